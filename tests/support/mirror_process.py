"""`ottla mirror run` in a process of its own, for tests."""

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.ottla_node import STOP_TIMEOUT_S, ottla_command


class MirrorProcess:
    """A mirror that says when it has begun."""

    def __init__(self, root: Path, source: str, target: str, *arguments: str) -> None:
        self.log_path = root / "mirror.log"
        self._command = ottla_command(
            "mirror", "run", "--source", source, "--bootstrap", target, "--refresh", "0.5", *arguments
        )
        self._process: subprocess.Popen[str] | None = None

    @classmethod
    def of_properties(cls, root: Path, properties: Mapping[str, str], *arguments: str) -> Self:
        """Return a mirror that reads a properties file of MirrorMaker 2."""
        root.mkdir(parents=True, exist_ok=True)
        file = root / "mm2.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return cls.of_command(root, "mirror", "run", "--config", str(file), *arguments)

    @classmethod
    def of_command(cls, root: Path, *words: str) -> Self:
        """Return a mirror that is started by these words after `ottla`."""
        made = cls(root, "", "")
        made._command = ottla_command(*words)
        return made

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.end(signal.SIGTERM)

    def start(self) -> None:
        """Start it. It waits itself for clusters that are away."""
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, text=True)

    def describe(self) -> str:
        """Say whether it runs, and what it said last."""
        code = None if self._process is None else self._process.poll()
        state = "runs" if self._process is not None and code is None else f"has ended ({code})"
        return f"The mirror {state}, and said: {self.log_path.read_text()[-2000:]}"

    def end(self, by: signal.Signals) -> int:
        """End it, in order or as a crash would."""
        assert self._process is not None
        process, self._process = self._process, None
        process.send_signal(by)
        return process.wait(STOP_TIMEOUT_S)
