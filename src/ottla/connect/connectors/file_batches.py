"""Directories of batches, each with the offsets behind it: what a sink of files has written.

A batch is written to a hidden directory, and counts when that is renamed. Tasks of one connector share the
directory. A task that commits holds a lock on it, and refuses records that a batch has already: so a task
that has lost a partition without knowing it writes nothing twice.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ottla.connect.errors import ConnectError
from ottla.model.ids import TopicPartition

BATCH: Final = "ottla_batch="
OFFSETS_FILE: Final = "_ottla_offsets.json"


class Batches:
    """The batches of one connector in a directory."""

    def __init__(self, directory: Path, connector: str) -> None:
        self.directory = directory
        self._connector = connector
        self._read: set[str] = set()
        self._offsets: dict[TopicPartition, int] = {}

    def offsets(self) -> dict[TopicPartition, int]:
        """Return the offsets behind all batches. Raises ConnectError."""
        for path in self.directory.glob(f"{BATCH}*/{OFFSETS_FILE}"):
            if path.parent.name not in self._read:
                self._learn(path)
        return dict(self._offsets)

    def _learn(self, path: Path) -> None:
        try:
            content = json.loads(path.read_text())
        except ValueError as error:
            raise ConnectError(
                f"{path} cannot be read, so it is unknown what was written: {error}"
            ) from error
        self._read.add(path.parent.name)
        if content["connector"] != self._connector:
            return
        for name, offset in content["offsets"].items():
            topic, _, partition = name.rpartition(":")
            where = TopicPartition(topic, int(partition))
            self._offsets[where] = max(self._offsets.get(where, 0), int(offset))

    def commit(self, staging: Path, name: str, offsets: Iterable[tuple[TopicPartition, int]]) -> None:
        """Have a batch with the records of these offsets count. Raises ConnectError if another has some."""
        ends: dict[TopicPartition, int] = {}
        with _locked(self.directory):
            stored = self.offsets()
            for where, offset in offsets:
                if offset < stored.get(where, 0):
                    raise ConnectError(
                        f"another task has written offset {offset} of {where}: "
                        "this task has lost the partition"
                    )
                ends[where] = offset + 1
            self._write_offsets(staging / OFFSETS_FILE, ends)
            for path in (*staging.rglob("*"), staging):
                _sync(path)
            staging.rename(self.directory / f"{BATCH}{name}")
            _sync(self.directory)

    def _write_offsets(self, path: Path, ends: Mapping[TopicPartition, int]) -> None:
        named = {f"{where.topic}:{where.partition}": end for where, end in ends.items()}
        path.write_text(json.dumps({"connector": self._connector, "offsets": named}))


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
