"""The sparse time index of a segment (`.timeindex`): from a timestamp to an offset to start looking at.

    off size  field
     0   8    the largest timestamp seen in the segment so far
     8   4    last offset of the batch that had it, minus the segment's base offset

Entries of 12 bytes, big-endian, timestamps strictly ascending, offsets ascending. An entry is added together
with an offset index entry if the timestamp grew, and once more when the segment becomes inactive or is
closed. Every batch that ends at or before an entry's offset has timestamps up to the entry's.

Works on bytes in memory. Reading and writing the file is the segment's.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.ids import NO_TIMESTAMP, Offset
from ottla.storage.file_errors import CorruptFile

ENTRY_BYTES: Final = 12
RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF

_ENTRY: Final = Struct(">qi")
_TIMESTAMP: Final = Struct(">q")
_RELATIVE_OFFSET: Final = Struct(">i")


class TimestampOffset(NamedTuple):
    """The largest timestamp so far, and the last offset of the batch that had it."""

    timestamp_ms: int
    offset: Offset


class TimeIndex:
    """The entries of one segment's time index."""

    __slots__ = ("base_offset", "entries")

    def __init__(self, base_offset: Offset, entries: bytes | bytearray | memoryview = b"") -> None:
        """Take the bytes of an index file as they are. `check` says whether they can be relied on."""
        self.base_offset = base_offset
        self.entries = bytearray(entries)

    def __len__(self) -> int:
        return len(self.entries) // ENTRY_BYTES

    def __iter__(self) -> Iterator[TimestampOffset]:
        base_offset = self.base_offset
        for timestamp_ms, relative_offset in _ENTRY.iter_unpack(self.entries):
            yield TimestampOffset(timestamp_ms, Offset(base_offset + relative_offset))

    @property
    def last(self) -> TimestampOffset:
        """The last entry, or no timestamp at the base offset when there is none."""
        return self._entry_at(len(self) - 1)

    def maybe_append(self, timestamp_ms: int, offset: Offset) -> bool:
        """Add an entry if the timestamp is later than all before. Says whether it did."""
        last = self.last
        if timestamp_ms <= last.timestamp_ms:
            return False
        relative_offset = offset - self.base_offset
        assert 0 <= relative_offset <= RELATIVE_OFFSET_MAX, "the segment must have been rolled before"
        assert offset >= last.offset, "a later timestamp was met in a later batch"
        self.entries += _ENTRY.pack(timestamp_ms, relative_offset)
        return True

    def find(self, target_ms: int) -> TimestampOffset:
        """Return the last entry at or before `target_ms`, or the start of the segment when there is none.

        The first record with a timestamp of at least `target_ms` has an offset at or after the entry's.
        """
        entries, unpack = self.entries, _TIMESTAMP.unpack_from
        slot = bisect_right(
            range(len(self)), target_ms, key=lambda slot: unpack(entries, slot * ENTRY_BYTES)[0]
        )
        return self._entry_at(slot - 1)

    def truncate_to(self, offset: Offset) -> None:
        """Forget the entries of batches that end at `offset` or later."""
        entries, unpack = self.entries, _RELATIVE_OFFSET.unpack_from
        kept = bisect_left(
            range(len(self)),
            offset - self.base_offset,
            key=lambda slot: unpack(entries, slot * ENTRY_BYTES + 8)[0],
        )
        del self.entries[kept * ENTRY_BYTES :]

    def check(self) -> None:
        """Raise `CorruptFile` unless the entries are plausible: whole, and ending later than they began."""
        if len(self.entries) % ENTRY_BYTES:
            raise CorruptFile("time index", f"{len(self.entries)} bytes are not a multiple of {ENTRY_BYTES}")
        if not self.entries:
            return
        first, last = self._entry_at(0), self.last
        if last.offset < self.base_offset or (len(self) > 1 and last.timestamp_ms <= first.timestamp_ms):
            raise CorruptFile("time index", f"first entry {first}, last {last}, base {self.base_offset}")

    def _entry_at(self, slot: int) -> TimestampOffset:
        if slot < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        timestamp_ms, relative_offset = _ENTRY.unpack_from(self.entries, slot * ENTRY_BYTES)
        return TimestampOffset(timestamp_ms, Offset(self.base_offset + relative_offset))
