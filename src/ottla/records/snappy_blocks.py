"""Snappy in the framing of xerial's Java library, and as one raw block, which librdkafka writes.

    82 "SNAPPY" 00 · version (int32 = 1) · oldest version that can read it (int32 = 1, not looked at)
    then blocks: length (int32, big-endian) · one raw snappy block of at most 32 KiB of data

A raw block starts with its decompressed size. That is checked before anything is allocated: against the
caller's limit, and against what snappy can reach at all.
"""

from struct import Struct
from typing import Final

from cramjam import DecompressionError, snappy

from ottla.records.errors import CorruptCompression, DecompressionTooLarge

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_VERSION_MIN: Final = 1
_BLOCK_BYTES: Final = 32 * 1024
_LENGTH: Final = Struct(">i")
# A copy of 64 bytes takes 3. Nothing in the format gives more for less.
_EXPANSION_MAX: Final = 22


def compress_snappy(data: bytes | memoryview) -> bytes:
    """Compress into xerial's framing, as Kafka's Java client does."""
    view = memoryview(data)
    parts = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def decompress_snappy(data: bytes | memoryview, limit_bytes: int) -> bytes:
    """Decompress either form into at most `limit_bytes`."""
    view = memoryview(data)
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        return _decompress_block(view, 0, limit_bytes)
    if len(view) < len(_HEADER):
        raise CorruptCompression("snappy", "cut off within the header")
    version: int = _LENGTH.unpack_from(view, len(_MAGIC))[0]
    if version < _VERSION_MIN:
        raise CorruptCompression("snappy", f"framing of version {version}")
    parts = []
    total = 0
    position = len(_HEADER)
    while position < len(view):
        if len(view) - position < _LENGTH.size:
            raise CorruptCompression("snappy", "cut off within the length of a block")
        length: int = _LENGTH.unpack_from(view, position)[0]
        position += _LENGTH.size
        if not 0 < length <= len(view) - position:
            raise CorruptCompression("snappy", f"a block of {length} bytes, {len(view) - position} are left")
        block = _decompress_block(view[position : position + length], total, limit_bytes)
        total += len(block)
        parts.append(block)
        position += length
    return b"".join(parts)


def _decompress_block(block: memoryview, before_bytes: int, limit_bytes: int) -> bytes:
    """Decompress a raw block, which may only bring the total from `before_bytes` up to the limit."""
    size = _decompressed_size(block)
    if size > len(block) * _EXPANSION_MAX:
        raise CorruptCompression("snappy", f"{len(block)} bytes cannot hold the {size} they declare")
    if before_bytes + size > limit_bytes:
        raise DecompressionTooLarge("snappy", limit_bytes)
    try:
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise CorruptCompression("snappy", "a damaged block") from error


def _decompressed_size(block: memoryview) -> int:
    """Read the size that a raw block starts with: 32 bits, seven to a byte, low ones first."""
    size = 0
    for at, byte in enumerate(block[:5]):
        size |= (byte & 127) << 7 * at
        if byte < 128:
            return size
    raise CorruptCompression("snappy", "no decompressed size")
