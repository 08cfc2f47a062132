"""The checkpoints of a log directory: one offset per partition, written again and again.

Writing may be done by another thread, in three steps: `start` takes the offsets, `run` writes and syncs a
file beside the checkpoint, `finish` puts it in its place, unless a newer one was written meanwhile. If a
power cut undoes the last step the older checkpoint is back, which says less but nothing wrong.

Lowering a recovery point is different, because the older checkpoint would be wrong: `write_now` waits for
the disk.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from ottla.model.ids import Offset, TopicPartition
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.checkpoints import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    decode_offset_checkpoint,
    encode_offset_checkpoint,
)
from ottla.world.disk import Disk, DiskError, Reason

_STAGED = ".staged"


class CheckpointKind(Enum):
    """What a checkpoint is of. The value is its file's name."""

    RECOVERY_POINT = RECOVERY_POINT_FILE
    LOG_START = LOG_START_FILE
    HIGH_WATERMARK = HIGH_WATERMARK_FILE
    CLEANER = CLEANER_FILE


class CheckpointWrite(NamedTuple):
    """A checkpoint on its way to the disk."""

    kind: CheckpointKind
    number: int
    path: str
    offsets: Mapping[TopicPartition, Offset]

    def run(self, disk: Disk) -> None:
        """Write and sync the file beside the checkpoint. May run in another thread."""
        content = encode_offset_checkpoint(self.offsets)
        file = disk.open(self.path + _STAGED, create=True)
        file.truncate(0)
        file.write(0, (content,))
        file.sync()
        file.close()


class DirectoryCheckpoints:
    """Reads and writes the checkpoints of one log directory."""

    __slots__ = ("_disk", "_numbers", "_path", "_written")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._numbers = dict.fromkeys(CheckpointKind, 0)
        self._written: dict[CheckpointKind, Mapping[TopicPartition, Offset]] = {}

    def path_of(self, kind: CheckpointKind) -> str:
        """Return the path of a checkpoint."""
        return f"{self._path}/{kind.value}"

    def read(self, kind: CheckpointKind) -> dict[TopicPartition, Offset]:
        """Return a checkpoint. One that is missing or damaged is empty: then more has to be recovered."""
        try:
            offsets = decode_offset_checkpoint(self._disk.read_file(self.path_of(kind)))
            self._written[kind] = offsets
            return dict(offsets)
        except CorruptFile:
            return {}
        except DiskError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            return {}

    def last_written(self, kind: CheckpointKind, partition: TopicPartition) -> Offset:
        """Return what the file says of a partition."""
        return self._written.get(kind, {}).get(partition, Offset(0))

    def start(self, kind: CheckpointKind, offsets: Mapping[TopicPartition, Offset]) -> CheckpointWrite | None:
        """Begin to write a checkpoint. None if it says what the last one said."""
        if self._written.get(kind) == offsets:
            return None
        self._numbers[kind] += 1
        return CheckpointWrite(kind, self._numbers[kind], self.path_of(kind), offsets)

    def finish(self, write: CheckpointWrite) -> None:
        """Put what `run` has written in its place."""
        if self._numbers[write.kind] != write.number:
            return
        self._disk.rename(write.path + _STAGED, write.path)
        self._written[write.kind] = write.offsets

    def write_now(self, kind: CheckpointKind, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Write a checkpoint and wait until it is safe."""
        self._numbers[kind] += 1
        self._disk.write_file_atomically(self.path_of(kind), encode_offset_checkpoint(offsets))
        self._written[kind] = offsets

    def remove_staged(self) -> None:
        """Remove what a crash left between `run` and `finish`."""
        for kind in CheckpointKind:
            path = self.path_of(kind) + _STAGED
            if self._disk.exists(path):
                self._disk.remove(path)
