"""A worker of connectors in a process of its own, on loopback, for tests."""

import subprocess
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from tests.support.ottla_node import START_TIMEOUT_S, STOP_TIMEOUT_S, free_port, ottla_command
from tests.support.registry_process import ask

PATIENCE_S = 90.0


class ConnectProcess:
    """`ottla connect`, which prints its URL when it is ready."""

    def __init__(self, bootstrap: str, *arguments: str, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = ottla_command(
            "connect", "--bootstrap", bootstrap, "--port", str(self.port), *arguments
        )
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None, "the worker runs"
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line == f"ready {self.url}", f"it said {line!r} within {START_TIMEOUT_S} s"

    def stop(self) -> None:
        """Stop it in order."""
        if self._process is not None:
            self._process.terminate()
            self._end()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        process, self._process = self._process, None
        process.wait(STOP_TIMEOUT_S * 2)
        assert process.stdout is not None
        process.stdout.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request, again as long as workers are about to agree. Returns status and answer."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            status, answer = ask(self.url, method, path, body)
            if status != 409 or "already exists" in str(answer) or time.monotonic() > deadline_s:
                return status, answer
            time.sleep(0.2)

    def create(self, name: str, **config: str) -> None:
        """Create a connector, which must work. Underscores in keys stand for dots."""
        body = {key.replace("_", "."): value for key, value in config.items()}
        status, answer = self.ask("PUT", f"/connectors/{quote(name)}/config", body)
        assert status in (200, 201), answer

    def wait_for(self, path: str, is_right: Callable[[Any], bool]) -> Any:
        """Ask until the answer is right, and return it."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            _, answer = self.ask("GET", path)
            try:
                if is_right(answer):
                    return answer
            except (KeyError, TypeError, IndexError):
                pass
            assert time.monotonic() < deadline_s, f"{path} answers {answer}"
            time.sleep(0.1)

    def wait_until_running(self, name: str, tasks: int = 1) -> None:
        """Wait until a connector and all its tasks run."""

        def runs(answer: Any) -> bool:
            states = [answer["connector"]["state"], *(task["state"] for task in answer["tasks"])]
            return states == ["RUNNING"] * (tasks + 1)

        self.wait_for(f"/connectors/{quote(name)}/status", runs)
