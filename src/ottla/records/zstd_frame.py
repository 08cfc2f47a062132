"""Zstandard frames, compressed as Kafka's Java client does and decompressed within a bound.

    28 b5 2f fd · descriptor · [window] · [dictionary id] · [content size] · blocks · [checksum]
    block: 3 bytes, little-endian (bit 0: last, bits 1-2: type, rest: size) · bytes

Four bytes can stand for 128 KiB, so output cannot be bounded by feeding little input. It is bounded by
feeding whole blocks, none of which gives more than 128 KiB. Finding them takes a walk along their headers,
which also tells a frame that is cut off from one that is complete.

A fresh context costs more than a small batch (60 us against 20 us for compressing 1 KB), and a context must
not be used by two threads at once: contexts lie in a list, are taken out while used, and are put back after.
"""

from collections.abc import Iterator
from typing import Final

from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from ottla.records.errors import CorruptCompression, DecompressionTooLarge

LEVEL_DEFAULT: Final = 3
LEVELS: Final = range(-131072, 23)
# Up to here the compressor does not know how much data comes, as in Kafka's Java client: it compresses better
# so. Higher levels would reserve for the worst, 833 MB at level 22 for any batch (5 MB if told).
_STREAMED_LEVEL_MAX: Final = 9

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_HEADER_BYTES_MIN: Final = 6
_BLOCK_HEADER_BYTES: Final = 3
_CHECKSUM_BYTES: Final = 4
# Fed at once: 8 blocks give at most 1 MiB.
_BLOCKS_FED_MAX: Final = 8
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)

# Idle contexts. One that has given much output keeps that much memory, and is not kept.
_IDLE_MAX: Final = 4
_KEPT_OUTPUT_BYTES_MAX: Final = 8 * 1024 * 1024
_idle_compressors: Final[dict[int, list[ZstdCompressor]]] = {}
_idle_decompressors: Final[list[ZstdDecompressor]] = []


def compress_zstd(data: bytes | memoryview, level: int = LEVEL_DEFAULT) -> bytes:
    """Compress into one frame that does not state its content size."""
    idle = _idle_compressors.setdefault(level, [])
    compressor = idle.pop() if idle else ZstdCompressor(level, write_content_size=False)
    if level <= _STREAMED_LEVEL_MAX:
        stream = compressor.compressobj()
    else:
        stream = compressor.compressobj(size=len(data))
    compressed = stream.compress(data) + stream.flush()
    if len(idle) < _IDLE_MAX:
        idle.append(compressor)
    return compressed


def decompress_zstd(data: bytes | memoryview, limit_bytes: int) -> bytes:
    """Decompress the frames that fill `data`, usually one, into at most `limit_bytes`."""
    view = memoryview(data)
    if not view:
        raise CorruptCompression("zstd", "no frame")
    decompressor = _idle_decompressors.pop() if _idle_decompressors else ZstdDecompressor()
    parts: list[bytes] = []
    total = 0
    position = 0
    while position < len(view):
        stream = decompressor.decompressobj()
        for piece_end in _find_piece_ends(view, position):
            try:
                part = stream.decompress(view[position:piece_end])
            except ZstdError as error:
                raise CorruptCompression("zstd", str(error)) from error
            position = piece_end
            total += len(part)
            if total > limit_bytes:
                raise DecompressionTooLarge("zstd", limit_bytes)
            parts.append(part)
        if not stream.eof:
            raise CorruptCompression("zstd", "the frame goes on after its last block")
    if total <= _KEPT_OUTPUT_BYTES_MAX and len(_idle_decompressors) < _IDLE_MAX:
        _idle_decompressors.append(decompressor)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _find_piece_ends(view: memoryview, position: int) -> Iterator[int]:
    """Walk the frame at `position`. Yields where to cut it: after every few blocks, and at its end."""
    position, has_checksum = _skip_header(view, position)
    is_last = False
    blocks = 0
    while not is_last:
        if blocks == _BLOCKS_FED_MAX:
            yield position
            blocks = 0
        header = int.from_bytes(view[position : position + _BLOCK_HEADER_BYTES], "little")
        is_last = header & 1 != 0
        is_run = header >> 1 & 3 == 1
        position += _BLOCK_HEADER_BYTES + (1 if is_run else header >> 3)
        if position > len(view):
            raise CorruptCompression("zstd", "cut off within a block")
        blocks += 1
    position += _CHECKSUM_BYTES if has_checksum else 0
    if position > len(view):
        raise CorruptCompression("zstd", "cut off within the checksum")
    yield position


def _skip_header(view: memoryview, position: int) -> tuple[int, bool]:
    """Return where the first block of a frame is, and whether a checksum follows the last."""
    if bytes(view[position : position + 4]) != _MAGIC or len(view) - position < _HEADER_BYTES_MIN:
        raise CorruptCompression("zstd", "no frame header")
    descriptor = view[position + 4]
    is_single_segment = descriptor & 0x20 != 0
    # A frame of a single segment has no window, but always a content size.
    content_size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or int(is_single_segment)
    window_bytes = int(not is_single_segment)
    dictionary_id_bytes = _DICTIONARY_ID_BYTES[descriptor & 3]
    return position + 5 + window_bytes + dictionary_id_bytes + content_size_bytes, descriptor & 0x04 != 0
