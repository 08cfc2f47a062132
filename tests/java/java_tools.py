"""Kafka's own command-line tools, as they come with 4.3.1. One JVM runs them all."""

import base64
import subprocess
from types import TracebackType
from typing import Self

from tests.java.jars import compiled, java_command


class JavaTools:
    """A JVM that runs tools, one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(compiled("Tools.java"), "Tools"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, tool: str, *arguments: str, reads: bytes = b"") -> tuple[int, str]:
        """Run a tool, and return its exit code and what it wrote."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = [base64.b64encode(reads).decode(), tool, *arguments]
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        code, _, written = self._process.stdout.readline().partition("\t")
        return int(code), base64.b64decode(written).decode()

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
