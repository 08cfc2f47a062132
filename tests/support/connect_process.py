"""A worker of connectors in a process of its own, on loopback, for tests."""

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from tests.support.satellite_process import SatelliteProcess

PATIENCE_S = 240.0


class ConnectProcess(SatelliteProcess):
    """`ottla connect`."""

    def __init__(self, bootstrap: str, *arguments: str, **options: Any) -> None:
        super().__init__("connect", bootstrap, *arguments, **options)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request, again as long as workers are about to agree. Returns status and answer."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            status, answer = super().ask(method, path, body, **headers)
            if status != 409 or "already exists" in str(answer) or time.monotonic() > deadline_s:
                return status, answer
            time.sleep(0.2)

    def create(self, name: str, **config: str) -> None:
        """Create a connector, which must work. Underscores in keys stand for dots."""
        body = {key.replace("_", "."): value for key, value in config.items()}
        status, answer = self.ask("PUT", f"/connectors/{quote(name)}/config", body)
        assert status in (200, 201), answer

    def wait_for(self, path: str, is_right: Callable[[Any], bool], **headers: str) -> Any:
        """Ask until the answer is right, and return it."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            _, answer = self.ask("GET", path, **headers)
            try:
                if is_right(answer):
                    return answer
            except (KeyError, TypeError, IndexError):
                pass
            assert time.monotonic() < deadline_s, f"{path} answers {answer}"
            time.sleep(0.1)

    def wait_until_running(self, name: str, tasks: int = 1, login: Mapping[str, str] | None = None) -> None:
        """Wait until a connector and all its tasks run."""

        def runs(answer: Any) -> bool:
            states = [answer["connector"]["state"], *(task["state"] for task in answer["tasks"])]
            return states == ["RUNNING"] * (tasks + 1)

        self.wait_for(f"/connectors/{quote(name)}/status", runs, **(login or {}))
