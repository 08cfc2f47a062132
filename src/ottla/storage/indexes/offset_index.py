"""The sparse offset index of a segment (`.index`): from an offset to where in the log file to look.

    off size  field
     0   4    offset minus the segment's base offset
     4   4    position in the log file

Entries of 8 bytes, big-endian, ascending. The offset is the *last* one of the batch that starts at the
position. Apache Kafka keeps the file of an active segment preallocated with zeros and trims it on roll and
on a clean stop; Ottla never pads. An entry of zeros is never valid: the first batch of a segment, which
alone lies at position 0, gets no entry.

Works on bytes in memory. Reading and writing the file is the segment's.
"""

from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.ids import FilePosition, Offset
from ottla.storage.file_errors import CorruptFile

ENTRY_BYTES: Final = 8
RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF

_ENTRY: Final = Struct(">ii")
_RELATIVE_OFFSET: Final = Struct(">i")


class OffsetPosition(NamedTuple):
    """Where the batch that ends at `offset` starts."""

    offset: Offset
    position: FilePosition


class OffsetIndex:
    """The entries of one segment's offset index."""

    __slots__ = ("base_offset", "entries")

    def __init__(self, base_offset: Offset, entries: bytes | bytearray | memoryview = b"") -> None:
        """Take the bytes of an index file as they are. `check` says whether they can be relied on."""
        self.base_offset = base_offset
        self.entries = bytearray(entries)

    def __len__(self) -> int:
        return len(self.entries) // ENTRY_BYTES

    def __iter__(self) -> Iterator[OffsetPosition]:
        base_offset = self.base_offset
        for relative_offset, position in _ENTRY.iter_unpack(self.entries):
            yield OffsetPosition(Offset(base_offset + relative_offset), FilePosition(position))

    @property
    def last(self) -> OffsetPosition:
        """The last entry, or the start of the segment when there is none."""
        return self._entry_at(len(self) - 1)

    def append(self, offset: Offset, position: FilePosition) -> None:
        """Add the entry of a batch that ends at `offset` and starts at `position`."""
        relative_offset = offset - self.base_offset
        assert 0 <= relative_offset <= RELATIVE_OFFSET_MAX, "the segment must have been rolled before"
        assert not self.entries or relative_offset > self.last.offset - self.base_offset, "entries ascend"
        self.entries += _ENTRY.pack(relative_offset, position)

    def find_scan_position(self, target: Offset) -> OffsetPosition:
        """Return where a reader looking for `target` has to start scanning the log file.

        That is the last entry at or before `target`, or the start of the segment when there is none: the
        index is sparse, so the batch may still lie up to one index interval further on.
        """
        # By hand: `bisect` with a key function takes 4.4 us in an index of 1 GiB, this 2.9 (measured).
        entries, unpack = self.entries, _RELATIVE_OFFSET.unpack_from
        wanted = target - self.base_offset
        low, high = 0, len(entries) // ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            if wanted < unpack(entries, middle * ENTRY_BYTES)[0]:
                high = middle
            else:
                low = middle + 1
        return self._entry_at(low - 1)

    def truncate_to(self, offset: Offset) -> None:
        """Forget the entries of batches that end at `offset` or later."""
        entries, unpack = self.entries, _RELATIVE_OFFSET.unpack_from
        kept = bisect_left(
            range(len(self)),
            offset - self.base_offset,
            key=lambda slot: unpack(entries, slot * ENTRY_BYTES)[0],
        )
        del self.entries[kept * ENTRY_BYTES :]

    def check(self, log_bytes: int) -> None:
        """Raise `CorruptFile` unless the entries can belong to a log file of `log_bytes`.

        Looks at the last entry only, as opening a log looks at each of its indexes: that finds torn, padded
        and foreign files. Whether every entry points at a batch shows when the log is scanned.
        """
        if len(self.entries) % ENTRY_BYTES:
            what = f"{len(self.entries)} bytes are not a multiple of {ENTRY_BYTES}"
            raise CorruptFile("offset index", what)
        if not self.entries:
            return
        relative_offset, position = _ENTRY.unpack_from(self.entries, len(self.entries) - ENTRY_BYTES)
        if relative_offset < 0 or not 0 < position < log_bytes:
            raise CorruptFile(
                "offset index",
                f"last entry has offset {self.base_offset} + {relative_offset} at position {position}, "
                f"the log file has {log_bytes} bytes",
            )

    def _entry_at(self, slot: int) -> OffsetPosition:
        if slot < 0:
            return OffsetPosition(self.base_offset, FilePosition(0))
        relative_offset, position = _ENTRY.unpack_from(self.entries, slot * ENTRY_BYTES)
        return OffsetPosition(Offset(self.base_offset + relative_offset), FilePosition(position))
