"""Apache Kafka's Java client as an actor of the lab, for those who have Java and the client's jars.

Its program is `LabClient.java` beside this file. It is compiled once, for all scenarios that are played.
"""

import base64
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

_SOURCE: Final = Path(__file__).with_name("LabClient.java")
_QUICK_START: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
"""For a JVM that lives for seconds."""


class NoJava(Exception):
    """There is no Java, or there are no jars."""


class Line(NamedTuple):
    """A record that a writer has to write."""

    partition: int | None
    timestamp_ms: int | None
    key: bytes | None
    value: bytes

    def __str__(self) -> str:
        key = "-" if self.key is None else base64.b64encode(self.key).decode()
        place, at = ("-" if one is None else one for one in (self.partition, self.timestamp_ms))
        return f"{place} {at} {key} {base64.b64encode(self.value).decode()}"


class JavaClient(NamedTuple):
    """The compiled program, and how it is run."""

    class_path: str

    def member_command(self, plan: dict[str, Any]) -> list[str]:
        """Return the command of a member."""
        words = (",".join(plan["topics"]), plan["commits"], str(plan["work_ms"]), str(plan["assigns"]))
        return self._command("member", *words, settings=plan["properties"])

    def write(self, settings: dict[str, str], topic: str, lines: Sequence[Line], timeout_s: float) -> None:
        """Write records, and wait until they are acknowledged."""
        done = subprocess.run(  # noqa: S603 - a program of our own
            self._command("writer", topic, settings=settings),
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode or done.stdout.strip() != str(len(lines)):
            raise NoJava(f"the writer in Java failed: {done.stderr.strip()[-500:]}")

    def _command(self, *words: str, settings: dict[str, str]) -> list[str]:
        pairs = [f"{name}={value}" for name, value in settings.items()]
        return ["java", *_QUICK_START, "-cp", self.class_path, "LabClient", *words, *pairs]


@contextmanager
def compiled_client(libraries: str) -> Iterator[JavaClient]:
    """Compile the program against the jars of a folder, and delete it in the end."""
    jars = f"{libraries}/*"
    with tempfile.TemporaryDirectory(prefix="ottla-lab-java-") as directory:
        command = ["javac", "-proc:none", "-nowarn", "-cp", jars, "-d", directory, str(_SOURCE)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        except FileNotFoundError:
            raise NoJava("javac is not installed: install a JDK of Java 17 or later") from None
        if done.returncode:
            raise NoJava(
                f"{libraries} has no jars of Kafka's client that work here: {done.stderr.strip()[:300]}"
            )
        yield JavaClient(f"{directory}:{jars}")
