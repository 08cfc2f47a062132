"""A real Ottla node in a process of its own, on loopback, for tests.

    with OttlaNode(tmp_path) as node:
        client = PlainClient(node.bootstrap)

It listens on a free port below 32768 (the system hands out those above for outgoing connections), and is
stopped by SIGTERM, as a careful operator would. A start takes well under a second.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.byte_code import keep_byte_code

from ottla.testing.ports import free_port

START_TIMEOUT_S = 180
STOP_TIMEOUT_S = 180
KEEPS_OLD_RECORDS = {"log.initial.task.delay.ms": "3600000"}
"""For tests that write records of years ago: the first look for what is too old comes after all of them."""


def ottla_command(*arguments: str) -> list[str]:
    """Return the command line of `ottla` in the environment that runs the tests."""
    return [str(Path(sys.executable).with_name("ottla")), *arguments]


class OttlaNode:
    """One node. Entering starts it, leaving stops it."""

    def __init__(
        self,
        root: Path,
        settings: Mapping[str, str] | None = None,
        *,
        data_directory: Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Prepare a node that keeps its files below `root`. `options` are those of the command."""
        self.root = root
        self.data_directory = data_directory or root / "data"
        # Tests count topics and logs. Those that want a journal say so.
        self.settings = {"ottla.journal.enable": "false", **(settings or {})}
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._options = options
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.stop()

    @property
    def log_path(self) -> Path:
        """Where the node writes what it has to say."""
        return self.root / "ottla.log"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the node runs"
        return self.process.pid

    def command(self) -> list[str]:
        """Return the command line that starts the node."""
        settings = [f"--set={name}={value}" for name, value in self.settings.items()]
        where = [] if "log.dirs" in self.settings else ["--data", str(self.data_directory)]
        return ottla_command("up", "--port", str(self.port), *where, *settings, *self._options)

    def start(self) -> None:
        """Start the node and wait until it says that it is ready."""
        keep_byte_code()
        self.root.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("ready ") or not line.endswith(f":{self.port}\n"):
            self.kill()
            raise AssertionError(f"{line!r} instead of being ready: {self.read_log()[-2000:]}")

    def stop(self) -> int:
        """Ask the node to stop, as an operator does. Returns its exit code."""
        return self._end(signal.SIGTERM)

    def hang_up(self) -> int:
        """Close its terminal, as the node sees that: SIGHUP, and once more. Returns its exit code."""
        os.kill(self.pid, signal.SIGHUP)
        return self._end(signal.SIGHUP)

    def kill(self) -> None:
        """End the node without a warning."""
        self._end(signal.SIGKILL)

    def read_log(self) -> str:
        """Return what the node has said so far."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    def resident_bytes(self) -> int:
        """Return how much memory the node's process uses."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None, "the node runs"
        process, self.process = self.process, None
        process.send_signal(number)
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the node did not stop: {self.read_log()[-2000:]}") from None
        assert process.stdout is not None
        process.stdout.close()
        return code
