"""Writes a history down, event by event, from many threads."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import monotonic_ns
from typing import Any, Final

WRITING: Final = frozenset(("txn", "copy", "send"))
"""Functions that need a cluster that works: a poll succeeds without one."""


class Recorder:
    """A history that is being written."""

    def __init__(
        self, keep: Callable[[dict[str, Any]], object], now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        """`keep` takes each event. Times are those of `now_ns`."""
        self._keep = keep
        self._now_ns = now_ns
        self._lock = Lock()
        self._number = 0
        self.processes = 0
        self._succeeded_ns = now_ns()

    def new_process(self) -> int:
        """Return the number of a process that there was not before."""
        with self._lock:
            self.processes += 1
            return self.processes

    def write(
        self, process: int, kind: str, function: str, value: list[Any], error: str | None = None
    ) -> None:
        """Write an event down."""
        with self._lock:
            now_ns = self._now_ns()
            event = {
                "i": self._number, "t": now_ns, "proc": process, "node": 1, "type": kind,
                "f": function, "value": value, "rebalance": [], "err": error,
            }  # fmt: skip
            self._number += 1
            if kind == "ok" and function in WRITING:
                self._succeeded_ns = now_ns
            self._keep(event)

    def seconds_since_success(self) -> float:
        """Return how long ago an operation that writes succeeded, or when the history began."""
        return (self._now_ns() - self._succeeded_ns) / 1e9


class HistoryFile:
    """A file with one JSON line for each event."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def keep(self, event: dict[str, Any]) -> None:
        """Write an event."""
        self._file.write(json.dumps(event) + "\n")

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
