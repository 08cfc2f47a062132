"""LZ4 frames as Kafka writes and reads them: independent blocks, around a library that knows only blocks.

    04 22 4d 18 · FLG · BD · [content size, 8 bytes] · header checksum · blocks · end mark (4 zero bytes)
    block: size (int32, little-endian; high bit: stored, not compressed) · bytes · [checksum, 4 bytes]

Kafka's reader refuses blocks that refer to earlier ones, so does this one: a broker that took them would
store what no Java client can read. Walking the blocks here bounds the output by construction, since a block
has a greatest size.

Deviation: the checksums that a frame may carry after each block and at its end are skipped. The checksum of
the batch covers the same bytes.
"""

from struct import Struct
from typing import Final

from cramjam import DecompressionError, lz4

from ottla.records.errors import CorruptCompression, DecompressionTooLarge

# Kafka's default level is 9 and means the fast compressor; every other level means the high compressor.
LEVEL_DEFAULT: Final = 9
LEVELS: Final = range(1, 18)
# What the library knows as levels of the high compressor. In Kafka's, too, 13 to 17 compress as 12 does.
_HIGH_LEVEL_MIN: Final = 3
_HIGH_LEVEL_MAX: Final = 12

_MAGIC: Final = b"\x04\x22\x4d\x18"
_BLOCK_BYTES: Final = 64 * 1024
# Version 1, independent blocks, no checksums, no content size; blocks of 64 KiB; the checksum of these two.
_HEADER: Final = _MAGIC + b"\x60\x40\x82"
_SIZE: Final = Struct("<I")
_STORED_BIT: Final = 0x80000000
_END_MARK: Final = bytes(4)
_CHECKSUM_BYTES: Final = 4

# FLG bits.
_VERSION_MASK, _VERSION_1 = 0xC0, 0x40
_INDEPENDENT_BIT: Final = 0x20
_BLOCK_CHECKSUM_BIT: Final = 0x10
_CONTENT_SIZE_BIT: Final = 0x08
_CONTENT_CHECKSUM_BIT: Final = 0x04
_RESERVED_FLAG_BITS: Final = 0x03
_RESERVED_SIZE_BITS: Final = 0x8F


def compress_lz4(data: bytes | memoryview, level: int = LEVEL_DEFAULT) -> bytes:
    """Compress into one frame, to the very bytes that Kafka's Java client writes."""
    if level != LEVEL_DEFAULT:
        return _compress_high(data, level)
    view = memoryview(data)
    parts: list[bytes | memoryview] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = view[start : start + _BLOCK_BYTES]
        packed = bytes(lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (_SIZE.pack(len(packed)), packed)
        else:
            parts += (_SIZE.pack(len(block) | _STORED_BIT), block)
    parts.append(_END_MARK)
    return b"".join(parts)


def _compress_high(data: bytes | memoryview, level: int) -> bytes:
    """Compress with the high compressor.

    The library has it only for whole frames, in which it puts a checksum after each block. Those are dropped.
    """
    high_level = min(max(level, _HIGH_LEVEL_MIN), _HIGH_LEVEL_MAX)
    compressor = lz4.Compressor(level=high_level, content_checksum=False, block_linked=False)
    compressor.compress(data)
    frame = memoryview(bytes(compressor.finish()))
    parts: list[bytes | memoryview] = [_HEADER]
    start = len(_HEADER)
    while True:
        size, position = _read_size(frame, start)
        if size == 0:
            parts.append(_END_MARK)
            return b"".join(parts)
        end = position + (size & ~_STORED_BIT)
        parts.append(frame[start:end])
        start = end + _CHECKSUM_BYTES


def decompress_lz4(data: bytes | memoryview, limit_bytes: int, check_header: bool = True) -> bytes:
    """Decompress one frame that takes all of `data`, into at most `limit_bytes`.

    Writers of format 0 computed the header checksum over the wrong bytes: `check_header` is off for them.
    """
    view = memoryview(data)
    position, flags, block_bytes_max = _read_header(view, check_header)
    trailer = _CHECKSUM_BYTES if flags & _BLOCK_CHECKSUM_BIT else 0
    # Blocks are decompressed here one after the other, then copied at their true size.
    scratch = bytearray(0)
    parts: list[bytes | memoryview] = []
    total = 0
    while True:
        size, position = _read_size(view, position)
        if size == 0:
            break
        stored = size & _STORED_BIT != 0
        size &= ~_STORED_BIT
        if size > block_bytes_max or size + trailer > len(view) - position:
            raise CorruptCompression("lz4", f"a block of {size} bytes, {len(view) - position} are left")
        block: bytes | memoryview = view[position : position + size]
        if not stored:
            scratch = scratch or bytearray(block_bytes_max)
            block = _decompress_block(block, scratch)
        total += len(block)
        if total > limit_bytes:
            raise DecompressionTooLarge("lz4", limit_bytes)
        parts.append(block)
        position += size + trailer
    position += _CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM_BIT else 0
    if position != len(view):
        raise CorruptCompression("lz4", f"the frame ends at {position} of {len(view)} bytes")
    return b"".join(parts)


def _read_header(view: memoryview, check_header: bool) -> tuple[int, int, int]:
    """Return the position after the header, the flags and the greatest size of a block."""
    if len(view) < len(_HEADER) or bytes(view[:4]) != _MAGIC:
        raise CorruptCompression("lz4", "no frame header")
    flags, block_size = view[4], view[5]
    if flags & _VERSION_MASK != _VERSION_1 or flags & _RESERVED_FLAG_BITS or block_size & _RESERVED_SIZE_BITS:
        raise CorruptCompression("lz4", f"unknown frame descriptor {flags:02x} {block_size:02x}")
    if not flags & _INDEPENDENT_BIT:
        raise CorruptCompression("lz4", "blocks that depend on each other, which Kafka does not read")
    if block_size < 0x40:
        raise CorruptCompression("lz4", f"unknown block size {block_size:02x}")
    position = 6 + (8 if flags & _CONTENT_SIZE_BIT else 0)
    if position >= len(view):
        raise CorruptCompression("lz4", "cut off within the frame header")
    if check_header and view[:7] != _HEADER and header_checksum(bytes(view[4:position])) != view[position]:
        raise CorruptCompression("lz4", "wrong header checksum")
    return position + 1, flags, 1 << (8 + 2 * (block_size >> 4))


def _read_size(view: memoryview, position: int) -> tuple[int, int]:
    if len(view) - position < _SIZE.size:
        raise CorruptCompression("lz4", "cut off before the end mark")
    size: int = _SIZE.unpack_from(view, position)[0]
    return size, position + _SIZE.size


def _decompress_block(block: bytes | memoryview, scratch: bytearray) -> bytes:
    try:
        size = lz4.decompress_block_into(block, scratch, output_len=len(scratch))
    except DecompressionError as error:
        raise CorruptCompression("lz4", "a damaged block") from error
    return bytes(memoryview(scratch)[:size])


def header_checksum(descriptor: bytes) -> int:
    """Return the second byte of the xxHash-32 of a frame descriptor. It is shorter than 16 bytes."""
    mask = 0xFFFFFFFF
    prime_1, prime_2, prime_3, prime_4, prime_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    state = prime_5 + len(descriptor) & mask
    words_end = len(descriptor) & ~3
    for at in range(0, words_end, 4):
        state = state + int.from_bytes(descriptor[at : at + 4], "little") * prime_3 & mask
        state = (state << 17 | state >> 15) * prime_4 & mask
    for byte in descriptor[words_end:]:
        state = state + byte * prime_5 & mask
        state = (state << 11 | state >> 21) * prime_1 & mask
    state = (state ^ state >> 15) * prime_2 & mask
    state = (state ^ state >> 13) * prime_3 & mask
    return (state ^ state >> 16) >> 8 & 0xFF
