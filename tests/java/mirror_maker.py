"""MirrorMaker 2 itself and its classes, for tests and benchmarks that hold ours against them."""

import fcntl
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.java.jars import HERE, QUICK_START, TARGET, need
from tests.java.oracle import Oracle

LIBS = TARGET / "mirror-maker"
_STOP_TIMEOUT_S = 60


def mirror_classpath() -> str:
    """Return the class path of MirrorMaker 2, fetched if need be. Skips the test without Java and Maven."""
    need("java", "javac", "mvn")
    TARGET.mkdir(exist_ok=True)
    with (TARGET / "mirror-maker.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = LIBS / ".complete"
        if not complete.exists():
            subprocess.run(
                [
                    "mvn", "-q", "-B", "-f", str(HERE / "mirror" / "pom.xml"),
                    "dependency:copy-dependencies", f"-DoutputDirectory={LIBS}", "-DincludeScope=runtime",
                ],
                check=True,
            )  # fmt: skip
            complete.touch()
    return f"{LIBS}/*"


def ask_mirror_maker(oracle: Oracle, *questions: tuple[object, ...]) -> list[str]:
    """Ask MirrorMaker 2's classes the questions of `MirrorMakerClasses.java`."""
    return [oracle.ask("MirrorMakerClasses", "\t".join(map(str, words))) for words in questions]


class MirrorMaker:
    """MirrorMaker 2 in a process of its own."""

    def __init__(self, root: Path, properties: Mapping[str, str]) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.log_path = root / "mirror-maker.log"
        self._file = root / "mm2.properties"
        self._file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it."""
        main_class = "org.apache.kafka.connect.mirror.MirrorMaker"
        command = ["java", *QUICK_START, "-Xmx512m", "-cp", mirror_classpath(), main_class, str(self._file)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self) -> None:
        """Stop it in order."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
