"""Walking the batches of a segment file by their headers, without reading what is between them.

Answers where the batch with an offset starts, where a log ends and what timestamps it has. Trusts the
checksums: a scan that must not is in `recovery`.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from ottla.records.batch import HEADER, HEADER_BYTES, LOG_OVERHEAD, MAGIC
from ottla.world.disk import File

# Enough for the batches of one index interval in most cases, and for the header of a large one.
_CHUNK_BYTES: Final = 4096
_LEGACY_BYTES_MIN: Final = (26, 34)
_LEGACY: Final = Struct(">qiIbB")
_TIMESTAMP: Final = Struct(">q")


class BatchPlace(NamedTuple):
    """A batch in a segment file, as far as looking things up needs it."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int

    @property
    def end(self) -> int:
        return self.position + self.size_bytes


def scan_batches(file: File, position: int, end: int) -> Iterator[BatchPlace]:
    """Give the places of the whole batches from `position` up to `end`.

    Stops before a batch that reaches beyond `end` or that cannot be one: there the log ends.
    """
    chunk = b""
    chunk_start = position
    while end - position >= LOG_OVERHEAD:
        at = position - chunk_start
        if at + HEADER_BYTES > len(chunk):
            chunk = file.read(position, min(_CHUNK_BYTES, end - position))
            chunk_start, at = position, 0
        place = find_place(chunk, at, position)
        if place is None or place.end > end:
            return
        yield place
        position = place.end


def find_place(chunk: bytes | memoryview, at: int, position: int) -> BatchPlace | None:
    """Read the header at `at` of `chunk`, which lies at `position` of the file. None if it is no header."""
    left = len(chunk) - at
    if left < _LEGACY_BYTES_MIN[0]:
        return None
    if chunk[at + 16] != MAGIC:
        return _find_legacy_place(chunk, at, position)
    if left < HEADER_BYTES:
        return None
    base_offset, length, leader_epoch, _, _, _, last_offset_delta, _, max_timestamp, _, _, _, _ = (
        HEADER.unpack_from(chunk, at)
    )
    if length < HEADER_BYTES - LOG_OVERHEAD or last_offset_delta < 0 or base_offset < 0:
        return None
    return BatchPlace(
        position,
        length + LOG_OVERHEAD,
        base_offset,
        base_offset + last_offset_delta,
        max_timestamp,
        leader_epoch,
    )


def _find_legacy_place(chunk: bytes | memoryview, at: int, position: int) -> BatchPlace | None:
    """Read a message of format 0 or 1. The offset of one that wraps others is the one of its last."""
    offset, length, _, magic, _ = _LEGACY.unpack_from(chunk, at)
    if magic not in (0, 1) or length + LOG_OVERHEAD < _LEGACY_BYTES_MIN[magic] or offset < 0:
        return None
    timestamp = -1
    if magic == 1:
        if len(chunk) - at < _LEGACY_BYTES_MIN[1]:
            return None
        timestamp = _TIMESTAMP.unpack_from(chunk, at + 18)[0]
    return BatchPlace(position, length + LOG_OVERHEAD, offset, offset, timestamp, -1)
