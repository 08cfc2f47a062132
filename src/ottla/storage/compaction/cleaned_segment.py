"""Writing a `.cleaned` segment: its log file and the indexes that go with it.

The files are not part of the log before they are swapped in, so nothing here has to be safe against a crash:
a start removes them. `finish` makes them survive a power cut, which has to be before the swap.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.ids import NO_TIMESTAMP, Offset
from ottla.storage.errors import OffsetOverflow
from ottla.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.indexes.transaction_index import AbortedTransaction, encode_transaction_index
from ottla.storage.names import SEGMENT_KINDS, FileKind, FileState, segment_file_name
from ottla.world.disk import Buffer, Disk, DiskError, Reason

_OFFSET_ENTRY: Final = Struct(">ii")


class WrittenBatch(NamedTuple):
    """What the indexes need to know of a batch."""

    size_bytes: int
    last_offset: int
    max_timestamp_ms: int


class CleanedSegment(NamedTuple):
    """A complete segment beside the log, with the state CLEANED in the names of its files."""

    base_offset: Offset
    kinds: tuple[FileKind, ...]
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int
    has_aborted: bool
    modified_ms: int


class CleanedSegmentWriter:
    """Writes one segment, from its first batch to its last."""

    def __init__(self, disk: Disk, directory: str, base_offset: Offset, index_interval_bytes: int) -> None:
        """Make the log file, empty. One that an earlier attempt left is overwritten."""
        self.base_offset = base_offset
        self.size_bytes = 0
        self._disk = disk
        self._directory = directory
        self._index_interval_bytes = index_interval_bytes
        self._file = disk.open(self._path(FileKind.LOG), create=True)
        self._file.truncate(0)
        self._written_bytes = 0
        self._pieces: list[Buffer] = []
        self._offset_entries = bytearray()
        self._times = TimeIndex(base_offset)
        self._bytes_since_entry = 0
        self._largest_timestamp_ms = NO_TIMESTAMP
        self._largest_offset = base_offset

    def add(self, data: Buffer, batches: Iterable[WrittenBatch]) -> None:
        """Add the bytes of batches, and what there is to know of each."""
        for batch in batches:
            self._index(*batch)
            self.size_bytes += batch.size_bytes
        self._pieces.append(data)

    def write_out(self) -> int:
        """Write what was added since the last time, and return how many bytes that were."""
        added_bytes = self.size_bytes - self._written_bytes
        if added_bytes:
            self._file.write(self._written_bytes, self._pieces)
            self._written_bytes = self.size_bytes
            self._pieces = []
        return added_bytes

    def finish(
        self, aborted: list[AbortedTransaction], modified_ms: int, *, replaces_transaction_index: bool
    ) -> CleanedSegment:
        """Complete all files and make them survive a power cut.

        A transaction index without entries is only written where it has to take the place of an older one.
        """
        self.write_out()
        self._times.maybe_append(self._largest_timestamp_ms, self._largest_offset)
        self._file.sync()
        self._file.close()
        contents: dict[FileKind, Buffer] = {
            FileKind.OFFSET_INDEX: self._offset_entries,
            FileKind.TIME_INDEX: self._times.entries,
        }
        if aborted or replaces_transaction_index:
            contents[FileKind.TRANSACTION_INDEX] = encode_transaction_index(aborted)
        for kind, content in contents.items():
            self._write_file(kind, content)
        kinds = (FileKind.LOG, *contents)
        for kind in kinds:
            self._disk.set_modified_ms(self._path(kind), modified_ms)
        self._disk.sync_directory(self._directory)
        return CleanedSegment(
            self.base_offset,
            kinds,
            self.size_bytes,
            len(self._offset_entries),
            len(self._times.entries),
            bool(aborted),
            modified_ms,
        )

    def abandon(self) -> None:
        """Remove the files."""
        self._file.close()
        for kind in SEGMENT_KINDS:
            try:
                self._disk.remove(self._path(kind))
            except DiskError as error:
                if error.reason is not Reason.NOT_FOUND:
                    raise

    def _index(self, size_bytes: int, last_offset: int, max_timestamp_ms: int) -> None:
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            raise OffsetOverflow(self.base_offset, last_offset)
        if max_timestamp_ms > self._largest_timestamp_ms:
            self._largest_timestamp_ms = max_timestamp_ms
            self._largest_offset = Offset(last_offset)
        if self._bytes_since_entry > self._index_interval_bytes:
            self._offset_entries += _OFFSET_ENTRY.pack(last_offset - self.base_offset, self.size_bytes)
            self._times.maybe_append(self._largest_timestamp_ms, self._largest_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size_bytes

    def _write_file(self, kind: FileKind, content: Buffer) -> None:
        file = self._disk.open(self._path(kind), create=True)
        file.truncate(0)
        if content:
            file.write(0, (content,))
        file.sync()
        file.close()

    def _path(self, kind: FileKind) -> str:
        return f"{self._directory}/{segment_file_name(self.base_offset, kind, FileState.CLEANED)}"
