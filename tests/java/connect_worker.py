"""A worker of Kafka Connect itself, for tests and benchmarks that hold ours against it."""

import fcntl
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from tests.support.satellite_process import ask

from ottla.testing.ports import free_port

HERE = Path(__file__).parent
LIBS = HERE.parent.parent / "target" / "connect-libs"
_PATIENCE_S = 120.0


def connect_classpath() -> str:
    """Return the class path of the worker, fetched if need be. Skips the test without Java and Maven."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: not compared with Kafka Connect")
    LIBS.parent.mkdir(exist_ok=True)
    with (LIBS.parent / "connect-libs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = LIBS / ".complete"
        if not complete.exists():
            fetched = subprocess.run(
                [
                    "mvn", "-q", "-B", "-f", str(HERE / "connect" / "pom.xml"),
                    "dependency:copy-dependencies", f"-DoutputDirectory={LIBS}", "-DincludeScope=runtime",
                ],
                check=False, capture_output=True, text=True,
            )  # fmt: skip
            if fetched.returncode != 0:
                pytest.skip(f"Maven could not fetch Kafka Connect ({fetched.stdout.strip()[-300:]})")
            complete.touch()
    return f"{LIBS}/*"


class KafkaConnectWorker:
    """A distributed worker of Kafka Connect."""

    def __init__(
        self,
        root: Path,
        bootstrap: str,
        properties: Mapping[str, str],
        java_options: Sequence[str] = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"),
    ) -> None:
        self._java_options = java_options
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        converter = "org.apache.kafka.connect.storage.StringConverter"
        self._properties = {
            "bootstrap.servers": bootstrap,
            "listeners": self.url,
            "key.converter": converter,
            "value.converter": converter,
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "scheduled.rebalance.max.delay.ms": "0",
            "plugin.discovery": "service_load",
            **properties,
        }
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None, "the worker runs"
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it is healthy."""
        class_path = connect_classpath()
        self._root.mkdir(parents=True, exist_ok=True)
        settings = self._root / "worker.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._properties.items()))
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        with (self._root / "worker.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["java", *self._java_options, "-cp", class_path, main, str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline_s = time.monotonic() + _PATIENCE_S
        while not self._is_healthy():
            assert self._process.poll() is None, (self._root / "worker.log").read_text()[-2000:]
            assert time.monotonic() < deadline_s, "Kafka Connect does not become healthy"
            time.sleep(0.2)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False

    def stop(self) -> None:
        """Stop it in order."""
        if self._process is not None:
            process, self._process = self._process, None
            process.terminate()
            process.wait(_PATIENCE_S)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request, again while it rebalances. Returns the status and the answer."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            status, answer = ask(self.url, method, path, body)
            if status != 409 or time.monotonic() > deadline_s:
                return status, answer
            time.sleep(0.3)
