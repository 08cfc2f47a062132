"""What was found to be damaged in a log: for the log file of the node, for metrics, and for operators.

Bytes that are taken out of a log are kept beside it, in files that neither Ottla nor Apache Kafka reads:

    00000000000000000170.log.4096-9216.damaged      bytes 4096 to 9215 of the segment at 170
    00000000000000000170.log.4096-9216.2.damaged    the same place, damaged a second time

They go with the directory of their partition, or when somebody removes them.
"""

from typing import Final, NamedTuple

from ottla.model.ids import Offset, TopicPartition
from ottla.storage.names import FileKind, segment_file_name
from ottla.world.disk import Disk, File

SUFFIX: Final = ".damaged"
_CHUNK_BYTES: Final = 1 << 20


class Damage(NamedTuple):
    """Bytes that are no part of a log any more, or offsets that it has lost."""

    partition: TopicPartition
    # The segment's file, and which of its bytes.
    path: str
    position: int
    size_bytes: int
    # The offsets from the first to before the next one are lost. None, if both are equal.
    first_offset: Offset
    next_offset: Offset
    # Where the bytes are now, or "" if there were none worth keeping.
    kept: str
    # They had been synced. If not, they are what a crash left of a write.
    was_synced: bool
    # Sound batches were among them.
    holds_batches: bool = False
    # Producers whose transactions were aborted, since the markers that ended them may be lost.
    aborted: tuple[int, ...] = ()
    # What happened, where that is something else.
    what: str = ""

    @property
    def words(self) -> str:
        """Say what happened, where, and what to do next."""
        if self.what:
            return f"{self.partition} is damaged: {self.what}"
        place = f"{self.size_bytes} bytes at {self.position} of {self.path}"
        kept = (
            f"; the bytes are kept in {self.kept}, and `ottla log salvage` prints their records"
            if self.kept
            else ""
        )
        if not self.was_synced:
            end = f"the log ends at {self.first_offset}"
            return f"{self.partition}: cut {place}, which were never synced; {end}{kept}"
        lost = "no offset is lost"
        if self.next_offset > self.first_offset:
            lost = f"offsets {self.first_offset} to {self.next_offset - 1} are lost"
        aborted = ""
        if self.aborted:
            producers = ", ".join([str(producer_id) for producer_id in self.aborted])
            aborted = f"; open transactions of producers {producers} count as aborted"
        return f"{self.partition} is damaged: {lost}, {place} cannot be read{aborted}{kept}"


def keep_range(disk: Disk, directory: str, base_offset: Offset, file: File, start: int, end: int) -> str:
    """Copy bytes of a segment's file aside, for good. Returns the path, or "" if they are zeros.

    If a start was interrupted after this, the file is there already.
    """
    if _is_zeros(file, start, end):
        return ""
    path, is_there = _free_path(disk, directory, base_offset, file, start, end)
    if not is_there:
        beside = f"{path}.tmp"
        copy = disk.open(beside, create=True)
        copy.truncate(0)
        for position in range(start, end, _CHUNK_BYTES):
            copy.write(position - start, (file.read(position, min(_CHUNK_BYTES, end - position)),))
        copy.sync()
        copy.close()
        disk.rename(beside, path)
        disk.sync_directory(directory)
    return path


def keep_file(disk: Disk, directory: str, base_offset: Offset, size: int) -> str:
    """Take a whole segment's file aside by another name. Returns that, or "" if it held nothing and is gone.

    The names are not synced.
    """
    old = f"{directory}/{segment_file_name(base_offset, FileKind.LOG)}"
    file = disk.open(old)
    try:
        if _is_zeros(file, 0, size):
            disk.remove(old)
            return ""
        path, is_there = _free_path(disk, directory, base_offset, file, 0, size)
    finally:
        file.close()
    if is_there:
        disk.remove(old)
    else:
        disk.rename(old, path)
    return path


def keep_copy(disk: Disk, path: str) -> str:
    """Copy a whole file aside, for good, and return where."""
    kept, number = path + SUFFIX, 1
    content = disk.read_file(path)
    while disk.exists(kept):
        if disk.read_file(kept) == content:
            return kept
        number += 1
        kept = f"{path}.{number}{SUFFIX}"
    disk.write_file_atomically(kept, content)
    return kept


def _is_zeros(file: File, start: int, end: int) -> bool:
    return not any(
        any(file.read(position, min(_CHUNK_BYTES, end - position)))
        for position in range(start, end, _CHUNK_BYTES)
    )


def _free_path(
    disk: Disk, directory: str, base_offset: Offset, file: File, start: int, end: int
) -> tuple[str, bool]:
    """Return a path that is free, or one where the same bytes are already."""
    stem = f"{directory}/{segment_file_name(base_offset, FileKind.LOG)}.{start}-{end}"
    path, number = stem + SUFFIX, 1
    while disk.exists(path):
        if _is_same(disk.open(path), file, start, end):
            return path, True
        number += 1
        path = f"{stem}.{number}{SUFFIX}"
    return path, False


def _is_same(kept: File, file: File, start: int, end: int) -> bool:
    try:
        if kept.size() != end - start:
            return False
        for position in range(start, end, _CHUNK_BYTES):
            length = min(_CHUNK_BYTES, end - position)
            if kept.read(position - start, length) != file.read(position, length):
                return False
        return True
    finally:
        kept.close()
