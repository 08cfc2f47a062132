"""One segment of a log: its file of batches, and what finds batches in it.

The files of the segment at base offset 170, next to each other in the partition's directory:

    00000000000000000170.log         batches, as they came
    00000000000000000170.index       see `offset_index`
    00000000000000000170.timeindex   see `time_index`
    00000000000000000170.txnindex    see `transaction_index`; only if a transaction was aborted

How entries get into the first two indexes is in `indexed_file`.

An inactive segment keeps next to nothing in memory: what is not known yet is `UNREAD` and read on demand.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from ottla.model.ids import NO_TIMESTAMP, Offset
from ottla.storage.indexes.index_files import extend_index
from ottla.storage.indexes.indexed_file import IndexedFile
from ottla.storage.indexes.offset_index import OffsetPosition
from ottla.storage.indexes.reindex import index_batches
from ottla.storage.indexes.time_index import TimestampOffset
from ottla.storage.indexes.transaction_index import ENTRY_BYTES as ABORTED_BYTES
from ottla.storage.indexes.transaction_index import (
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
    truncate_aborted,
)
from ottla.storage.loading.recovery import RecoveredSegment
from ottla.storage.names import FileKind, FileState, segment_file_name
from ottla.storage.scan import BatchPlace, scan_batches
from ottla.storage.volume import Volume
from ottla.world.disk import File

# Writing into reserved blocks takes a fifth less time (measured with 16 KB at once on ext4). A sixteenth
# of what is there already is reserved, so that small and idle segments take no space that they do not need.
ALLOCATION_BYTES_MIN: Final = 2 << 20
_ALLOCATION_SHIFT: Final = 4
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


class BatchEnd(NamedTuple):
    """Where the last batch of a segment ends: the offset and the position after it."""

    next_offset: Offset
    position: int


class Segment(IndexedFile):
    """A segment. Positions and sizes are those of its `.log` file."""

    __slots__ = (
        "_aborted",
        "allocated_bytes",
        "bytes_since_entry",
        "first_timestamp_known",
        "has_aborted",
        "modified_ms",
        "roll_jitter_ms",
        "size",
    )

    def __init__(self, volume: Volume, file: File, base_offset: Offset, modified_ms: int) -> None:
        """Stand for an empty segment."""
        super().__init__(volume, file, base_offset)
        self.size = 0
        # How far blocks are reserved; up to there it is not worth it.
        self.allocated_bytes = ALLOCATION_BYTES_MIN
        # When the file was made or last seen modified: the age of a segment without timestamps.
        self.modified_ms = modified_ms
        self.roll_jitter_ms = 0
        # The first batch's max timestamp, as far as known.
        self.first_timestamp_known = NO_TIMESTAMP
        self.bytes_since_entry = 0
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
        volume = self.volume
        # A log that grows fast may use up the reserve before anybody else looks.
        volume.look_at_room()
        if volume.is_short:
            self.allocated_bytes = self.size
            return
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

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Note an aborted transaction whose marker was appended to this segment."""
        # In place: a copy for each would make a million of them cost a million times a million.
        entries = self.aborted()
        extend_index(
            self.volume.disk,
            self.path_of(FileKind.TRANSACTION_INDEX),
            len(entries) * ABORTED_BYTES,
            transaction.encode(),
        )
        entries.append(transaction)
        self.has_aborted = True
        self._aborted = entries

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

    def aborted(self) -> list[AbortedTransaction]:
        """Return the transactions whose ABORT marker lies in this segment."""
        if not self.has_aborted:
            return []
        if self._aborted is not None:
            return self._aborted
        content = self.volume.disk.read_file(self.path_of(FileKind.TRANSACTION_INDEX))
        return decode_transaction_index(content, self.base_offset)

    # Looking things up.

    def find_batch(self, offset: Offset) -> BatchPlace | None:
        """Find the batch that holds `offset`, or the first one after it."""
        for place in self.scan_from(offset):
            if place.last_offset >= offset:
                return place
        return None

    def scan_from(self, offset: Offset) -> Iterator[BatchPlace]:
        """Give the batches from one that starts at or before `offset`, near to it, to the end."""
        places = self._find_places(self.find_entry(offset))
        if places is None:
            self.reindex()
            places = scan_batches(self.file, self.find_scan_position(offset), self.size)
        return places

    def _find_places(self, entry: OffsetPosition) -> Iterator[BatchPlace] | None:
        """Give the batches from the one of an index entry on. None if the entry cannot be right.

        The entry has the last offset of that batch, or, if an older Kafka made it, of a later one.
        """
        places = scan_batches(self.file, entry.position, self.size)
        if entry.position == 0:
            return places
        first = next(places, None)
        if first is None or first.last_offset > entry.offset:
            return None
        return chain((first,), places)

    def reindex(self) -> None:
        """Make the indexes again, since an entry did not say what is there."""
        self._replace_indexes(index_batches(self.base_offset, scan_batches(self.file, 0, self.size)))
        self._last_indexed_timestamp = self.last_time_entry().timestamp_ms

    def end_of_batches_from(self, offset: Offset) -> BatchEnd:
        """Return where the batches end that can be walked from one near to `offset`.

        Mostly that is at the end of all.
        """
        end = BatchEnd(self.base_offset, 0)
        for place in self.scan_from(offset):
            end = BatchEnd(Offset(place.last_offset + 1), place.end)
        return end

    def find_batch_at(self, position: int) -> BatchPlace | None:
        """Find the batch that starts at `position`, if one does."""
        return next(scan_batches(self.file, position, self.size), None)

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

    def read_end(self) -> BatchEnd:
        """Read what the files know of the segment's end. Returns where its last whole batch ends.

        Batches before the last offset entry cannot have a larger timestamp than the last time entry, since
        both kinds are added at once. So only the few after it are looked at.
        """
        places = self._find_places(self.last_entry())
        if places is None:
            self.reindex()
            places = scan_batches(self.file, self.last_entry().position, self.size)
        largest_timestamp, largest_offset = self.last_time_entry()
        self._last_indexed_timestamp = largest_timestamp
        end = BatchEnd(self.base_offset, 0)
        for place in places:
            if place.max_timestamp > largest_timestamp:
                largest_timestamp, largest_offset = place.max_timestamp, Offset(place.last_offset)
            end = BatchEnd(Offset(place.last_offset + 1), place.end)
        self._largest_timestamp, self._largest_offset = largest_timestamp, largest_offset
        return end

    # Becoming another one.

    def become_active(self) -> Offset:
        """Read what is needed to append. Returns the offset after the last batch."""
        next_offset, size = self.read_end()
        if size < self.size:
            # Whatever follows the last whole batch is not part of the log, and must not be sent to readers.
            self.file.truncate(size)
            self.size = size
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
