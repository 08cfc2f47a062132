"""Writes a history down, event by event, from many threads."""

import json
from pathlib import Path
from threading import Lock
from time import monotonic_ns
from typing import Any


class Recorder:
    """A history that is being written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._lock = Lock()
        self._number = 0
        self._process = 0
        self.counts: dict[str, int] = {}
        self.highest: dict[int, int] = {}
        """By key, the highest offset that an acknowledged send got or anybody polled."""

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
                "i": self._number, "t": monotonic_ns(), "proc": process, "node": 1, "type": kind,
                "f": function, "value": value, "rebalance": [], "err": error,
            }  # fmt: skip
            self._number += 1
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self._file.write(json.dumps(event) + "\n")
            if kind != "invoke":
                self._note_offsets(kind, value)

    def _note_offsets(self, kind: str, value: list[Any]) -> None:
        for step in value:
            match step:
                case ["send", key, [int(offset), _]] if kind == "ok":
                    self.highest[key] = max(self.highest.get(key, -1), offset)
                case ["poll", dict(records)]:
                    for key, pairs in records.items():
                        for offset, _ in pairs:
                            self.highest[int(key)] = max(self.highest.get(int(key), -1), offset)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
