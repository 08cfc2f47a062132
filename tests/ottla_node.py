"""A running Ottla node on loopback, as its users start it: the command, in a process of its own.

with OttlaNode(tmp_path) as node:
    client = PlainClient(node.bootstrap)
"""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

_STOP_TIMEOUT_S = 30


class OttlaNode:
    """One node. Entering starts it, leaving stops it."""

    def __init__(
        self, root: Path, properties: Mapping[str, str] | None = None, *, data_directory: Path | None = None
    ) -> None:
        """Prepare a node that keeps its files below `root`, with `properties` as its configuration."""
        self.root = root
        self.data_directory = data_directory or root / "data"
        self.properties = dict(properties or {})
        self.bootstrap = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def log_path(self) -> Path:
        """Where the node writes what it has to say."""
        return self.root / "ottla.log"

    def start(self) -> None:
        """Start the node and wait until it says that it is ready."""
        self.root.mkdir(parents=True, exist_ok=True)
        settings = self.root / "ottla.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        command = [
            str(Path(sys.executable).parent / "ottla"), "up",
            "--data", str(self.data_directory), "--port", "0", "--config", str(settings),
        ]  # fmt: skip
        with self.log_path.open("a") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None, "it was asked for"
        word, _, self.bootstrap = self._process.stdout.readline().strip().partition(" ")
        if word != "ready":
            self.kill()
            raise AssertionError(f"Ottla did not start:\n{self.log_path.read_text()[-4000:]}")

    def stop(self) -> None:
        """Ask the node to stop, as an operator does, and wait for it."""
        assert self._end(signal.SIGTERM) in (0, None), self.log_path.read_text()[-4000:]

    def kill(self) -> None:
        """End the node without a warning."""
        self._end(signal.SIGKILL)

    def _end(self, by: signal.Signals) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(by)
        process.communicate(timeout=_STOP_TIMEOUT_S)
        return process.returncode
