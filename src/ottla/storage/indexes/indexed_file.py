"""A segment's log file with its two sparse indexes: entries added, kept in files, and looked up.

Entries stay in memory until some have come together, and are then added to the index files. So the index
files of an active segment lag behind; `save_indexes` completes them when it is rolled or closed. After a
crash they are rebuilt, as those of every segment that reaches above the recovery point.
"""

from bisect import bisect_left
from functools import partial
from struct import Struct
from typing import Final

from ottla.model.ids import NO_TIMESTAMP, FilePosition, Offset
from ottla.storage.indexes.index_cache import Indexes
from ottla.storage.indexes.index_files import (
    cut_index,
    extend_index,
    read_index,
    read_index_part,
    replace_index,
    sync_index,
)
from ottla.storage.indexes.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.storage.indexes.offset_index import OffsetIndex, OffsetPosition
from ottla.storage.indexes.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.storage.indexes.time_index import TimeIndex, TimestampOffset
from ottla.storage.names import FileKind
from ottla.storage.volume import Volume
from ottla.world.disk import File

# Two writes for this many entries cost about 10 us: nothing, spread over the appends that made them.
_UNSAVED_BYTES_MAX: Final = 128 * OFFSET_ENTRY_BYTES

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class IndexedFile:
    """A log file and its indexes."""

    __slots__ = (
        "_largest_offset",
        "_largest_timestamp",
        "_last_indexed_timestamp",
        "base_offset",
        "file",
        "offset_bytes",
        "time_bytes",
        "unsaved_offsets",
        "unsaved_times",
        "volume",
    )

    def __init__(self, volume: Volume, file: File, base_offset: Offset) -> None:
        self.volume = volume
        self.file = file
        self.base_offset = base_offset
        # The largest timestamp of all batches, and the last offset of the batch that has it.
        self._largest_timestamp = NO_TIMESTAMP
        self._largest_offset = base_offset
        self._last_indexed_timestamp = NO_TIMESTAMP
        # Sizes of the indexes, with the entries that are not in the files yet.
        self.offset_bytes = 0
        self.time_bytes = 0
        self.unsaved_offsets: OffsetIndex | None = None
        self.unsaved_times: TimeIndex | None = None

    def path_of(self, kind: FileKind) -> str:
        """Return the path of one of the segment's files. They are all in the state of the log file."""
        stem, _, state = self.file.path.rpartition(FileKind.LOG.value)
        return stem + kind.value + state

    # Adding entries.

    def _add_index_entries(self, position: int, last_offset: int) -> None:
        offsets = self.unsaved_offsets
        if offsets is None:
            offsets = self.unsaved_offsets = OffsetIndex(self.base_offset)
        offsets.entries += _OFFSET_ENTRY.pack(last_offset - self.base_offset, position)
        self.offset_bytes += OFFSET_ENTRY_BYTES
        if self._largest_timestamp > self._last_indexed_timestamp:
            self._add_time_entry()
        if len(offsets.entries) >= _UNSAVED_BYTES_MAX:
            self.save_indexes()

    def _add_time_entry(self) -> None:
        if self.unsaved_times is None:
            self.unsaved_times = TimeIndex(self.base_offset)
        self.unsaved_times.entries += _TIME_ENTRY.pack(
            self._largest_timestamp, self._largest_offset - self.base_offset
        )
        self.time_bytes += TIME_ENTRY_BYTES
        self._last_indexed_timestamp = self._largest_timestamp

    # Saving and reading the files.

    @property
    def has_unsaved_indexes(self) -> bool:
        return self.unsaved_offsets is not None or self.unsaved_times is not None

    @property
    def _offset_bytes_saved(self) -> int:
        unsaved = self.unsaved_offsets
        return self.offset_bytes if unsaved is None else self.offset_bytes - len(unsaved.entries)

    @property
    def _time_bytes_saved(self) -> int:
        unsaved = self.unsaved_times
        return self.time_bytes if unsaved is None else self.time_bytes - len(unsaved.entries)

    def save_indexes(self) -> None:
        """Bring the index files up to date. They are there afterwards, even if empty."""
        offsets = b"" if self.unsaved_offsets is None else self.unsaved_offsets.entries
        times = b"" if self.unsaved_times is None else self.unsaved_times.entries
        disk = self.volume.disk
        extend_index(disk, self.path_of(FileKind.OFFSET_INDEX), self._offset_bytes_saved, offsets)
        extend_index(disk, self.path_of(FileKind.TIME_INDEX), self._time_bytes_saved, times)
        cached = self.volume.index_cache.find(self)
        if cached is not None:
            cached.offsets.entries += offsets
            cached.times.entries += times
            self.volume.index_cache.put(self, cached)
        self.unsaved_offsets = None
        self.unsaved_times = None

    def saved_indexes(self) -> Indexes:
        """Return what is in the index files."""
        cache = self.volume.index_cache
        indexes = cache.find(self)
        if indexes is None:
            disk = self.volume.disk
            offsets = read_index(disk, self.path_of(FileKind.OFFSET_INDEX), self._offset_bytes_saved)
            times = read_index(disk, self.path_of(FileKind.TIME_INDEX), self._time_bytes_saved)
            indexes = Indexes(OffsetIndex(self.base_offset, offsets), TimeIndex(self.base_offset, times))
            cache.put(self, indexes)
        return indexes

    # Looking things up.

    def find_entry(self, offset: Offset) -> OffsetPosition:
        """Return the batch that a reader looking for `offset` has to start at, or the segment's start."""
        unsaved = self.unsaved_offsets
        if unsaved is not None and offset - self.base_offset >= _OFFSET_ENTRY.unpack_from(unsaved.entries)[0]:
            return unsaved.find_scan_position(offset)
        if self._offset_bytes_saved == 0:
            return OffsetPosition(self.base_offset, FilePosition(0))
        return self.saved_indexes().offsets.find_scan_position(offset)

    def find_scan_position(self, offset: Offset) -> FilePosition:
        """Return where a reader looking for `offset` has to start scanning the file."""
        return self.find_entry(offset).position

    def find_time_entry(self, timestamp_ms: int) -> TimestampOffset:
        """Return an entry behind which the first record of at least `timestamp_ms` lies."""
        unsaved = self.unsaved_times
        if unsaved is not None:
            found = unsaved.find(timestamp_ms)
            if found.timestamp_ms >= 0:
                return found
        if self._time_bytes_saved == 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self.saved_indexes().times.find(timestamp_ms)

    def find_offset_after(self, position: int) -> Offset | None:
        """Find the last offset of some batch that starts at `position` or later, if an index has one."""
        indexes = [self.unsaved_offsets]
        if self._offset_bytes_saved:
            indexes.insert(0, self.saved_indexes().offsets)
        for index in indexes:
            if index is not None and index.entries and index.last.position >= position:
                entries = index.entries
                slot = bisect_left(range(len(index)), position, key=partial(_position_at, entries))
                relative_offset: int = _OFFSET_ENTRY.unpack_from(entries, slot * OFFSET_ENTRY_BYTES)[0]
                return Offset(self.base_offset + relative_offset)
        return None

    def last_entry(self) -> OffsetPosition:
        """Return the last entry of the offset index, or the start of the segment."""
        unsaved = self.unsaved_offsets
        if unsaved is not None and unsaved.entries:
            return unsaved.last
        path = self.path_of(FileKind.OFFSET_INDEX)
        position = self._offset_bytes_saved - OFFSET_ENTRY_BYTES
        entry = read_index_part(self.volume.disk, path, position, OFFSET_ENTRY_BYTES)
        return OffsetIndex(self.base_offset, entry).last

    def last_time_entry(self) -> TimestampOffset:
        """Return the last entry of the time index, or no timestamp at the base offset."""
        unsaved = self.unsaved_times
        if unsaved is not None and unsaved.entries:
            return unsaved.last
        path = self.path_of(FileKind.TIME_INDEX)
        position = self._time_bytes_saved - TIME_ENTRY_BYTES
        entry = read_index_part(self.volume.disk, path, position, TIME_ENTRY_BYTES)
        return TimeIndex(self.base_offset, entry).last

    def _replace_indexes(self, indexes: Indexes) -> None:
        """Write the index files again, whatever is in them and in memory."""
        disk = self.volume.disk
        replace_index(disk, self.path_of(FileKind.OFFSET_INDEX), indexes.offsets.entries)
        replace_index(disk, self.path_of(FileKind.TIME_INDEX), indexes.times.entries)
        for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX):
            # The segment may lie below the recovery point, and then no flush looks at it again.
            sync_index(disk, self.path_of(kind))
        self.offset_bytes = len(indexes.offsets.entries)
        self.time_bytes = len(indexes.times.entries)
        self.unsaved_offsets = self.unsaved_times = None
        self.volume.index_cache.put(self, indexes)

    def _truncate_indexes(self, offset: Offset) -> None:
        self.save_indexes()
        saved = self.saved_indexes()
        saved.offsets.truncate_to(offset)
        saved.times.truncate_to(offset)
        self.volume.index_cache.put(self, saved)
        self.offset_bytes = len(saved.offsets.entries)
        self.time_bytes = len(saved.times.entries)
        cut_index(self.volume.disk, self.path_of(FileKind.OFFSET_INDEX), self.offset_bytes)
        cut_index(self.volume.disk, self.path_of(FileKind.TIME_INDEX), self.time_bytes)


def _position_at(entries: bytearray, slot: int) -> int:
    position: int = _OFFSET_ENTRY.unpack_from(entries, slot * OFFSET_ENTRY_BYTES)[1]
    return position
