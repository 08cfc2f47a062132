"""One segment of a log: its file of batches, and what finds batches in it.

The files of the segment at base offset 170, next to each other in the partition's directory:

    00000000000000000170.log         batches, as they came
    00000000000000000170.index       see `offset_index`
    00000000000000000170.timeindex   see `time_index`
    00000000000000000170.txnindex    see `transaction_index`; only if a transaction was aborted

Index entries stay in memory until some have come together, and are then added to the index files. So the
index files of an active segment lag behind; `save_indexes` completes them when it is rolled or closed. After
a crash they are rebuilt, as those of every segment that reaches above the recovery point.

An inactive segment keeps next to nothing in memory: what is not known yet is `UNREAD` and read on demand.
"""

from bisect import bisect_left
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.ids import NO_TIMESTAMP, FilePosition, Offset
from ottla.storage.index_cache import Indexes
from ottla.storage.index_files import cut_index, extend_index, read_index, read_index_part
from ottla.storage.names import FileKind, FileState, segment_file_name
from ottla.storage.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.storage.offset_index import OffsetIndex, OffsetPosition
from ottla.storage.recovery import RecoveredSegment
from ottla.storage.scan import BatchPlace, scan_batches
from ottla.storage.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.storage.time_index import TimeIndex, TimestampOffset
from ottla.storage.transaction_index import (
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
    truncate_aborted,
)
from ottla.storage.volume import Volume
from ottla.world.disk import File

# Two writes for this many entries cost about 10 us: nothing, spread over the appends that made them.
_UNSAVED_BYTES_MAX: Final = 128 * OFFSET_ENTRY_BYTES

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")

# Writing into reserved blocks takes a fifth less time (measured with 16 KB at once on ext4). An eighth of
# what is there already is reserved, so that small and idle segments take no space that they do not need.
ALLOCATION_BYTES_MIN: Final = 2 << 20
_ALLOCATION_SHIFT: Final = 3
_ALLOCATION_BYTES_MAX: Final = 4 << 20

UNREAD: Final = -(1 << 62)
"""In place of a timestamp: it is in the files, and nobody has asked for it yet."""


class SegmentFacts(NamedTuple):
    """All that is known of a segment with complete files: to carry it to another process."""

    base_offset: Offset
    size: int
    modified_ms: int
    offset_bytes: int
    time_bytes: int
    has_aborted: bool
    first_timestamp: int = UNREAD
    largest_timestamp: int = UNREAD
    largest_offset: Offset = Offset(-1)
    last_indexed_timestamp: int = UNREAD
    bytes_since_entry: int = 0


class Segment:
    """A segment. Positions and sizes are those of its `.log` file."""

    __slots__ = (
        "_aborted",
        "_largest_offset",
        "_largest_timestamp",
        "_last_indexed_timestamp",
        "allocated_bytes",
        "base_offset",
        "bytes_since_entry",
        "file",
        "first_timestamp_known",
        "has_aborted",
        "modified_ms",
        "offset_bytes",
        "roll_jitter_ms",
        "size",
        "time_bytes",
        "unsaved_offsets",
        "unsaved_times",
        "volume",
    )

    def __init__(self, volume: Volume, file: File, base_offset: Offset, modified_ms: int) -> None:
        """Stand for an empty segment."""
        self.volume = volume
        self.file = file
        self.base_offset = base_offset
        self.size = 0
        # How far blocks are reserved; up to there it is not worth it.
        self.allocated_bytes = ALLOCATION_BYTES_MIN
        # When the file was made or last seen modified: the age of a segment without timestamps.
        self.modified_ms = modified_ms
        self.roll_jitter_ms = 0
        # The first batch's max timestamp as far as known, the largest of all, and its batch's last offset.
        self.first_timestamp_known = NO_TIMESTAMP
        self._largest_timestamp = NO_TIMESTAMP
        self._largest_offset = base_offset
        self._last_indexed_timestamp = NO_TIMESTAMP
        self.bytes_since_entry = 0
        # Sizes of the indexes, with the entries that are not in the files yet.
        self.offset_bytes = 0
        self.time_bytes = 0
        self.unsaved_offsets: OffsetIndex | None = None
        self.unsaved_times: TimeIndex | None = None
        self.has_aborted = False
        # Of the active segment only. Others are asked rarely, and read their file.
        self._aborted: list[AbortedTransaction] | None = None

    @classmethod
    def of_facts(cls, volume: Volume, file: File, facts: SegmentFacts) -> "Segment":
        """Stand for a segment whose files are complete."""
        segment = cls(volume, file, facts.base_offset, facts.modified_ms)
        segment.size = facts.size
        segment.offset_bytes = facts.offset_bytes
        segment.time_bytes = facts.time_bytes
        segment.has_aborted = facts.has_aborted
        if facts.size:
            segment.first_timestamp_known = facts.first_timestamp
            segment._largest_timestamp = facts.largest_timestamp
            segment._largest_offset = facts.largest_offset
            segment._last_indexed_timestamp = facts.last_indexed_timestamp
            segment.bytes_since_entry = facts.bytes_since_entry
        return segment

    @classmethod
    def of_files(
        cls,
        volume: Volume,
        file: File,
        base_offset: Offset,
        modified_ms: int,
        *,
        size: int,
        offset_bytes: int,
        time_bytes: int,
        has_aborted: bool,
    ) -> "Segment":
        """Stand for a segment of whose complete files nothing but the sizes are known."""
        facts = SegmentFacts(base_offset, size, modified_ms, offset_bytes, time_bytes, has_aborted)
        return cls.of_facts(volume, file, facts)

    def facts(self) -> SegmentFacts:
        """Take down what is known. All index entries must be in the files."""
        assert not self.has_unsaved_indexes, "entries in memory would be lost"
        return SegmentFacts(
            self.base_offset,
            self.size,
            self.modified_ms,
            self.offset_bytes,
            self.time_bytes,
            self.has_aborted,
            self.first_timestamp_known,
            self._largest_timestamp,
            self._largest_offset,
            self._last_indexed_timestamp,
            self.bytes_since_entry,
        )

    # Names.

    def path_of(self, kind: FileKind) -> str:
        """Return the path of one of the segment's files. They are all in the state of the log file."""
        stem, _, state = self.file.path.rpartition(FileKind.LOG.value)
        return stem + kind.value + state

    def derived_paths(self) -> list[str]:
        """Return the paths of the index files."""
        kinds = [FileKind.OFFSET_INDEX, FileKind.TIME_INDEX]
        if self.has_aborted:
            kinds.append(FileKind.TRANSACTION_INDEX)
        return [self.path_of(kind) for kind in kinds]

    def rename(self, state: FileState) -> list[str]:
        """Give all files of the segment the suffix of `state`, and return their paths. The handle follows."""
        disk = self.volume.disk
        stem = self.file.path.rpartition(FileKind.LOG.value)[0]
        renamed: list[str] = []
        for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX):
            path = self.path_of(kind)
            if disk.exists(path):
                renamed.append(stem + kind.value + state.value)
                disk.rename(path, renamed[-1])
        path = stem + FileKind.LOG.value + state.value
        disk.rename(self.file.path, path)
        self.file.path = path
        self.volume.renames += 1
        self.volume.index_cache.forget(self)
        return [*renamed, path]

    # Appending. An active segment has read everything about itself.

    def append(
        self, records: memoryview, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Write one batch at the end. On a `DiskError` nothing but the file may have changed."""
        position = self.size
        self.file.write(position, (records,))
        # As in `note_batch`, again here because a call costs a hundredth of an append.
        size_bytes = len(records)
        self.size = position + size_bytes
        if max_timestamp > self._largest_timestamp:
            self._largest_timestamp = max_timestamp
            self._largest_offset = last_offset  # type: ignore[assignment]
        if self.bytes_since_entry > index_interval_bytes:
            self._add_index_entries(position, last_offset)
            self.bytes_since_entry = size_bytes
        else:
            self.bytes_since_entry += size_bytes
            if position == 0:
                self.first_timestamp_known = max_timestamp
        if position > self.allocated_bytes:
            self._allocate()

    def _allocate(self) -> None:
        self.allocated_bytes = self.size + min(self.size >> _ALLOCATION_SHIFT, _ALLOCATION_BYTES_MAX)
        self.file.allocate(self.allocated_bytes)

    def note_batch(
        self,
        position: int,
        size_bytes: int,
        last_offset: int,
        max_timestamp: int,
        index_interval_bytes: int,
    ) -> None:
        """Take notice of a batch that was written at the end."""
        self.size = position + size_bytes
        if max_timestamp > self._largest_timestamp:
            self._largest_timestamp = max_timestamp
            self._largest_offset = Offset(last_offset)
        if self.bytes_since_entry > index_interval_bytes:
            self._add_index_entries(position, last_offset)
            self.bytes_since_entry = size_bytes
        else:
            self.bytes_since_entry += size_bytes
            if position == 0:
                self.first_timestamp_known = max_timestamp

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

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Note an aborted transaction whose marker was appended to this segment."""
        entries = self.aborted()
        extend_index(
            self.volume.disk,
            self.path_of(FileKind.TRANSACTION_INDEX),
            len(encode_transaction_index(entries)),
            transaction.encode(),
        )
        self.has_aborted = True
        self._aborted = [*entries, transaction]

    # Saving and reading the indexes.

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

    def become_inactive(self) -> None:
        """Complete the index files and forget what is only needed to append."""
        if self.largest.timestamp_ms > self._last_indexed_timestamp:
            self._add_time_entry()
        self.save_indexes()
        self._aborted = None
        if self.allocated_bytes > ALLOCATION_BYTES_MIN:
            # Gives the blocks back that were reserved behind the end.
            self.file.truncate(self.size)
            self.allocated_bytes = ALLOCATION_BYTES_MIN

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

    def aborted(self) -> list[AbortedTransaction]:
        """Return the transactions whose ABORT marker lies in this segment."""
        if not self.has_aborted:
            return []
        if self._aborted is not None:
            return self._aborted
        content = self.volume.disk.read_file(self.path_of(FileKind.TRANSACTION_INDEX))
        return decode_transaction_index(content, self.base_offset)

    # Looking things up.

    def find_scan_position(self, offset: Offset) -> FilePosition:
        """Return where a reader looking for `offset` has to start scanning the file."""
        unsaved = self.unsaved_offsets
        if unsaved is not None:
            found = unsaved.find_scan_position(offset)
            if found.position:
                return found.position
        if self._offset_bytes_saved == 0:
            return FilePosition(0)
        return self.saved_indexes().offsets.find_scan_position(offset).position

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

    def find_batch(self, offset: Offset) -> BatchPlace | None:
        """Find the batch that holds `offset`, or the first one after it."""
        for place in scan_batches(self.file, self.find_scan_position(offset), self.size):
            if place.last_offset >= offset:
                return place
        return None

    def find_batch_at(self, position: int) -> BatchPlace | None:
        """Find the batch that starts at `position`, if one does."""
        return next(scan_batches(self.file, position, self.size), None)

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

    @property
    def first_timestamp(self) -> int:
        """The max timestamp of the first batch, or -1."""
        if self.first_timestamp_known == UNREAD:
            first = self.find_batch_at(0)
            self.first_timestamp_known = NO_TIMESTAMP if first is None else first.max_timestamp
        return self.first_timestamp_known

    @property
    def largest(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the batch that has it."""
        if self._largest_timestamp == UNREAD:
            self.read_end()
        return TimestampOffset(self._largest_timestamp, self._largest_offset)

    @property
    def largest_timestamp_ms(self) -> int:
        """The largest timestamp, or when the file was last modified: what retention goes by."""
        largest_ms = self.largest.timestamp_ms
        return largest_ms if largest_ms >= 0 else self.modified_ms

    def read_end(self) -> Offset:
        """Read what the files know of the segment's end. Returns the offset after its last batch.

        Batches before the last offset entry cannot have a larger timestamp than the last time entry, since
        both kinds are added at once. So only the few after it are looked at.
        """
        largest_timestamp, largest_offset = self.last_time_entry()
        self._last_indexed_timestamp = largest_timestamp
        next_offset = self.base_offset
        end = 0
        for place in scan_batches(self.file, self.last_entry().position, self.size):
            if place.max_timestamp > largest_timestamp:
                largest_timestamp, largest_offset = place.max_timestamp, Offset(place.last_offset)
            next_offset = Offset(place.last_offset + 1)
            end = place.end
        self._largest_timestamp, self._largest_offset = largest_timestamp, largest_offset
        # Whatever follows the last whole batch is not part of the log.
        self.size = end
        return next_offset

    # Becoming another one.

    def become_active(self) -> Offset:
        """Read what is needed to append. Returns the offset after the last batch."""
        size = self.size
        next_offset = self.read_end()
        if self.size < size:
            # Readers are sent a completed segment to the end of its file.
            self.file.truncate(self.size)
        self.keep_aborted()
        return next_offset

    def keep_aborted(self) -> None:
        """Have the aborted transactions in memory, since every fetch of a committed reader asks for them."""
        if self.has_aborted:
            self._aborted = self.aborted()

    def take_recovered(self, recovered: RecoveredSegment) -> None:
        """Take over what recovery found out. The files are as it says."""
        self.size = recovered.valid_bytes
        self.first_timestamp_known = recovered.first_timestamp
        self._largest_timestamp, self._largest_offset = recovered.largest
        self._last_indexed_timestamp = recovered.last_indexed_timestamp
        self.bytes_since_entry = recovered.bytes_since_entry
        self.offset_bytes = len(recovered.offset_entries)
        self.time_bytes = len(recovered.time_entries)
        self.unsaved_offsets = self.unsaved_times = None
        self.has_aborted = bool(recovered.aborted)
        self._aborted = None
        self.volume.index_cache.forget(self)

    def truncate_to(self, offset: Offset) -> Offset:
        """Cut the batch that holds `offset` and all after it. Returns the offset after the last one left."""
        place = self.find_batch(offset)
        cut = self.size if place is None else place.position
        self._truncate_indexes(offset)
        if self.has_aborted:
            self._truncate_aborted(offset)
        self.file.truncate(cut)
        self.size = cut
        self.bytes_since_entry = 0
        self.first_timestamp_known = UNREAD if cut else NO_TIMESTAMP
        return self.become_active()

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

    def _truncate_aborted(self, offset: Offset) -> None:
        left = truncate_aborted(self.aborted(), offset)
        path = self.path_of(FileKind.TRANSACTION_INDEX)
        if left:
            self.volume.disk.write_file_atomically(path, encode_transaction_index(left))
        else:
            self.volume.disk.remove(path)
        self.has_aborted, self._aborted = bool(left), left or None


def segment_path(directory: str, base_offset: Offset) -> str:
    """Return the path of a segment's log file."""
    return f"{directory}/{segment_file_name(base_offset, FileKind.LOG)}"


def _position_at(entries: bytearray, slot: int) -> int:
    position: int = _OFFSET_ENTRY.unpack_from(entries, slot * OFFSET_ENTRY_BYTES)[1]
    return position
