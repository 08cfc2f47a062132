"""Telling the sound batches of a segment from damage, without changing anything.

Where a batch cannot be right the search goes on behind it: first where its own length says that the next one
starts, because most damage leaves the length alone, and otherwise byte by byte. A batch is taken for one if
its length, its magic and its checksum are right, and its offsets fit between those before it and the end of
the segment.

The checksum does not cover a batch's base offset. One that is too small shows at once. One that is too large
shows by the batch behind it, which then seems to go back: if that one fits behind the batch before, the batch
between the two is the damaged one.

Messages of format 0 and 1 are recognised where they follow sound ones, but not searched for behind damage:
their headers look like too much else.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from crc32c import crc32c

from ottla.records.batch import HEADER, HEADER_BYTES, LOG_OVERHEAD, MAGIC, BatchHeader, iter_batches
from ottla.records.errors import RecordsError

_WINDOW_BYTES: Final = 1 << 20
_MAGIC_POSITION: Final = 16
_MAGIC_BYTE: Final = bytes([MAGIC])
_CRC_FROM: Final = 21
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD
_LEGACY_BYTES_MIN: Final = 26
_OFFSET_MAX: Final = 1 << 62
_SEARCHED_OFFSETS_MAX: Final = 1 << 31


class Readable(Protocol):
    """A file, as far as it is needed here."""

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes."""


class SoundBatch(NamedTuple):
    """A batch that is as it was written. `header` is None for a message of format 0 or 1."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    header: BatchHeader | None

    @property
    def end(self) -> int:
        return self.position + self.size_bytes


class DamagedRange(NamedTuple):
    """Bytes that are no sound batch, and the offsets that may have been in them, as far as known.

    `next_offset` is that of the batch behind the range, or None if there is none.
    """

    position: int
    end: int
    first_offset: int
    next_offset: int | None

    @property
    def size_bytes(self) -> int:
        return self.end - self.position


class Window:
    """A file, read in large pieces."""

    __slots__ = ("_content", "_file", "_start", "size")

    def __init__(self, file: Readable, size: int) -> None:
        self.size = size
        self._file = file
        self._content = b""
        self._start = 0

    def bytes_at(self, position: int, length: int) -> memoryview:
        """Return `length` bytes, or fewer at the end of the file."""
        length = min(length, self.size - position)
        at = position - self._start
        if at < 0 or at + length > len(self._content):
            wanted = min(max(length, _WINDOW_BYTES), self.size - position)
            self._content = self._file.read(position, max(wanted, 0))
            self._start, at = position, 0
        return memoryview(self._content)[at : at + max(length, 0)]

    def find(self, byte: bytes, position: int) -> int:
        """Return where `byte` is found next, or -1."""
        while position < self.size:
            is_here = self._start <= position < self._start + len(self._content)
            if not is_here and not len(self.bytes_at(position, 1)):
                return -1
            found = self._content.find(byte, position - self._start)
            if found >= 0:
                return self._start + found
            position = self._start + len(self._content)
        return -1


def examine(
    file: Readable,
    size: int,
    base_offset: int,
    end_offset: int | None = None,
    position: int = 0,
    gapless_to: int = 0,
) -> Iterator[SoundBatch | DamagedRange]:
    """Give all of a segment from `position` on, where `base_offset` is expected: sound batches and damage.

    `end_offset` is where the next segment starts, if there is one. Up to `gapless_to` offsets are known to be
    there without a gap, so that the last batch cannot begin behind it if the one before ends below. Zeros at
    the end count as damage, too.
    """
    window = Window(file, size)
    limit = _OFFSET_MAX if end_offset is None else end_offset
    expected = base_offset
    # A batch that comes after a gap is held back until the one behind it bears it out.
    held: SoundBatch | None = None
    damaged_from = -1
    while position < size or held is not None:
        after = expected if held is None else held.last_offset + 1
        found = find_sound(window, position, after, limit)
        if held is not None:
            instead = find_sound(window, position, expected, limit) if found is None else None
            is_last_too_far = position >= size and expected < gapless_to <= held.base_offset
            if instead is None and not is_last_too_far:
                if damaged_from >= 0:
                    yield DamagedRange(damaged_from, held.position, expected, held.base_offset)
                    damaged_from = -1
                yield held
                expected = held.last_offset + 1
            else:
                # The log goes on as if the batch that was held back did not exist.
                damaged_from = held.position if damaged_from < 0 else damaged_from
                found = instead
            held = None
        if position >= size:
            break
        if found is None:
            if damaged_from < 0:
                damaged_from = position
            position = _next_candidate(window, position, expected, limit)
        elif found.base_offset > expected:
            held = found
            position = found.end
        else:
            if damaged_from >= 0:
                yield DamagedRange(damaged_from, found.position, expected, found.base_offset)
                damaged_from = -1
            yield found
            expected = found.last_offset + 1
            position = found.end
    if damaged_from >= 0:
        yield DamagedRange(damaged_from, size, expected, None)


def find_sound(window: Window, position: int, offset_min: int, limit: int) -> SoundBatch | None:
    """Return the batch at `position` if it is sound, with offsets from `offset_min` to below `limit`."""
    head = window.bytes_at(position, HEADER_BYTES)
    if len(head) < _LEGACY_BYTES_MIN:
        return None
    if head[_MAGIC_POSITION] != MAGIC:
        return _find_legacy(window, position, offset_min, limit)
    if len(head) < HEADER_BYTES:
        return None
    header = BatchHeader._make(HEADER.unpack_from(head))
    size_bytes = header.batch_length + LOG_OVERHEAD
    if (
        header.batch_length < _LENGTH_MIN
        or position + size_bytes > window.size
        or header.last_offset_delta < 0
        or header.base_offset < offset_min
        or header.last_offset >= limit
        or crc32c(window.bytes_at(position, size_bytes)[_CRC_FROM:]) != header.crc
    ):
        return None
    return SoundBatch(position, size_bytes, header.base_offset, header.last_offset, header)


def _find_legacy(window: Window, position: int, offset_min: int, limit: int) -> SoundBatch | None:
    head = window.bytes_at(position, _LEGACY_BYTES_MIN)
    size_bytes = LOG_OVERHEAD + int.from_bytes(head[8:12], signed=True)
    if head[_MAGIC_POSITION] > 1 or size_bytes < _LEGACY_BYTES_MIN or position + size_bytes > window.size:
        return None
    try:
        message = next(iter_batches(window.bytes_at(position, size_bytes)), None)
        if message is None or not message.crc_is_valid():
            return None
    except RecordsError:
        return None
    if not offset_min <= message.base_offset < limit:
        return None
    return SoundBatch(position, size_bytes, message.base_offset, message.base_offset, None)


def _next_candidate(window: Window, position: int, offset_min: int, limit: int) -> int:
    """Return where a sound batch may start behind the damage at `position`, or the size of the file."""
    head = window.bytes_at(position, LOG_OVERHEAD)
    if len(head) == LOG_OVERHEAD:
        length = int.from_bytes(head[8:12], signed=True)
        told = position + LOG_OVERHEAD + length
        if length >= _LENGTH_MIN and find_sound(window, told, offset_min, limit) is not None:
            return told
    # Else any bytes could pass for a header of a batch that is as large as the rest of the file.
    limit = min(limit, offset_min + _SEARCHED_OFFSETS_MAX)
    at = position + 1
    while True:
        found = window.find(_MAGIC_BYTE, at + _MAGIC_POSITION)
        if found < 0:
            return window.size
        at = found - _MAGIC_POSITION
        if find_sound(window, at, offset_min, limit) is not None:
            return at
        at += 1
