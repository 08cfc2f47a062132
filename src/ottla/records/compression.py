"""Compressing and decompressing the record area of a batch, for every codec, within a bound.

What is compressed here is what Kafka's Java client would have written: same framing, same parameters. What
is decompressed may come from any client, and from anyone: output is bounded by an absolute size and by a
ratio to the input, and is never produced beyond that bound by more than one chunk (4 MiB at most).
"""

import zlib
from struct import Struct
from typing import Final, NamedTuple

from ottla.records import lz4_frame, zstd_frame
from ottla.records.attributes import Codec
from ottla.records.errors import CorruptCompression, DecompressionTooLarge
from ottla.records.lz4_frame import compress_lz4, decompress_lz4
from ottla.records.snappy_blocks import compress_snappy, decompress_snappy
from ottla.records.zstd_frame import compress_zstd, decompress_zstd

GZIP_LEVEL_DEFAULT: Final = -1
GZIP_LEVELS: Final = range(1, 10)

# Deflate, no flags, no time, no hints, system unknown: what Java writes, whatever the level.
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_GZIP_TRAILER: Final = Struct("<II")
_RAW_DEFLATE: Final = -15
_GZIP: Final = 31
_LATER_PIECE_BYTES: Final = 4096


class DecompressionLimits(NamedTuple):
    """How much output is allowed: `bytes_max`, and `ratio_max` times the input.

    The ratio says nothing about small inputs (a kilobyte of equal bytes packs a thousand-fold, and is
    harmless), so it is only applied above `ratio_free_bytes`.
    """

    bytes_max: int = 64 * 1024 * 1024
    ratio_max: int = 1000
    ratio_free_bytes: int = 1024 * 1024

    def limit_bytes(self, compressed_bytes: int) -> int:
        return min(self.bytes_max, max(self.ratio_free_bytes, compressed_bytes * self.ratio_max))


DEFAULT_LIMITS: Final = DecompressionLimits()

_LEVELS: Final = {Codec.GZIP: GZIP_LEVELS, Codec.LZ4: lz4_frame.LEVELS, Codec.ZSTD: zstd_frame.LEVELS}
_LEVEL_DEFAULTS: Final = {
    Codec.GZIP: GZIP_LEVEL_DEFAULT,
    Codec.LZ4: lz4_frame.LEVEL_DEFAULT,
    Codec.ZSTD: zstd_frame.LEVEL_DEFAULT,
}


def resolve_level(codec: Codec, level: int | None) -> int:
    """Return the level to compress with. None is the codec's default; one it has not raises ValueError."""
    default = _LEVEL_DEFAULTS.get(codec, 0)
    if level is None or level == default:
        return default
    if level not in _LEVELS.get(codec, ()):
        raise ValueError(f"{codec.name.lower()} has no compression level {level}")
    return level


def compress(codec: Codec, data: bytes, level: int | None = None) -> bytes:
    """Compress `data` as Kafka's Java client does. Without a level, with the codec's default one."""
    level = resolve_level(codec, level)
    match codec:
        case Codec.GZIP:
            return compress_gzip(data, level)
        case Codec.SNAPPY:
            return compress_snappy(data)
        case Codec.LZ4:
            return compress_lz4(data, level)
        case Codec.ZSTD:
            return compress_zstd(data, level)
        case Codec.NONE:
            return data


def decompress(codec: Codec, data: bytes | memoryview, limits: DecompressionLimits = DEFAULT_LIMITS) -> bytes:
    """Decompress all of `data`. Raises `DecompressionTooLarge` or `CorruptCompression`, nothing else."""
    limit_bytes = limits.limit_bytes(len(data))
    match codec:
        case Codec.GZIP:
            return decompress_gzip(data, limit_bytes)
        case Codec.SNAPPY:
            return decompress_snappy(data, limit_bytes)
        case Codec.LZ4:
            return decompress_lz4(data, limit_bytes)
        case Codec.ZSTD:
            return decompress_zstd(data, limit_bytes)
        case Codec.NONE:
            return bytes(data)


def compress_gzip(data: bytes, level: int = GZIP_LEVEL_DEFAULT) -> bytes:
    """Compress into one gzip member with Java's header."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    trailer = _GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEADER, deflate.compress(data), deflate.flush(), trailer))


def decompress_gzip(data: bytes | memoryview, limit_bytes: int) -> bytes:
    """Decompress the gzip members that fill `data`, usually one, into at most `limit_bytes`."""
    view = memoryview(data)
    parts: list[bytes] = []
    total = position = 0
    # What lies behind a member is copied at its end. So only the first, usually the only one, is given all.
    piece_bytes = len(view)
    while True:
        inflate = zlib.decompressobj(_GZIP)
        while not inflate.eof:
            if position == len(view):
                raise CorruptCompression("gzip", "cut off")
            piece = view[position : position + piece_bytes]
            try:
                # One byte more than allowed is enough to know that there is more than allowed.
                part = inflate.decompress(piece, limit_bytes - total + 1)
            except zlib.error as error:
                raise CorruptCompression("gzip", str(error)) from error
            total += len(part)
            if total > limit_bytes:
                raise DecompressionTooLarge("gzip", limit_bytes)
            if part:
                parts.append(part)
            position += len(piece) - len(inflate.unused_data)
        if position == len(view):
            return parts[0] if len(parts) == 1 else b"".join(parts)
        piece_bytes = _LATER_PIECE_BYTES
