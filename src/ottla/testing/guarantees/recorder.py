"""Writes a history down, event by event, from many threads."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import monotonic_ns
from typing import Any


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
        self._process = 0

    def new_process(self) -> int:
        """Return the number of a process that there was not before."""
        with self._lock:
            self._process += 1
            return self._process

    def write(
        self, process: int, kind: str, function: str, value: list[Any], error: str | None = None
    ) -> None:
        """Write an event down."""
        with self._lock:
            event = {
                "i": self._number, "t": self._now_ns(), "proc": process, "node": 1, "type": kind,
                "f": function, "value": value, "rebalance": [], "err": error,
            }  # fmt: skip
            self._number += 1
            self._keep(event)


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
