"""The four codecs: their framings, their bounds, and frames that other libraries wrote."""

import gzip
import zlib
from random import Random
from struct import pack
from types import SimpleNamespace

import lz4.frame
import pytest
import zstandard

from ottla.records import compression
from ottla.records.attributes import Codec
from ottla.records.compression import DecompressionLimits, compress, decompress, resolve_level
from ottla.records.errors import CorruptCompression, DecompressionTooLarge
from ottla.records.lz4_frame import header_checksum
from ottla.records.snappy_blocks import compress_snappy

CODECS = [codec for codec in Codec if codec]
KIB = 1024
MIB = 1024 * KIB

TEXT = b"".join(b'{"id": %d, "name": "user %d"}' % (number, number * 7919 % 1000) for number in range(9000))
NOISE = Random(1).randbytes(100_000)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize(
    "data", [b"", b"x", TEXT, NOISE, bytes(300_000)], ids=["0", "1", "text", "noise", "zeros"]
)
def test_what_was_compressed_comes_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data
    assert decompress(codec, memoryview(compress(codec, data))) == data


@pytest.mark.parametrize(
    ("codec", "start"),
    [
        (Codec.GZIP, "1f8b08000000000000ff"),
        (Codec.SNAPPY, "82534e41505059000000000100000001"),
        (Codec.LZ4, "04224d18604082"),
        (Codec.ZSTD, "28b52ffd0058"),
    ],
)
def test_frames_start_as_those_of_kafkas_java_client(codec: Codec, start: str) -> None:
    assert compress(codec, TEXT).hex().startswith(start)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Codec.GZIP, (1, 9, -1)),
        (Codec.LZ4, (1, 2, 3, 9, 12, 13, 17)),
        (Codec.ZSTD, (-131072, -1, 1, 9, 10, 22)),
    ],
)
def test_every_level_can_be_read(codec: Codec, levels: tuple[int, ...]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT, level


def test_higher_levels_compress_better() -> None:
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 9, 12), (Codec.ZSTD, 1, 19)):
        assert len(compress(codec, TEXT, high)) < len(compress(codec, TEXT, low))


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, 0), (Codec.GZIP, 10), (Codec.LZ4, 0), (Codec.LZ4, 18), (Codec.ZSTD, 23), (Codec.SNAPPY, 1)],
)
def test_a_level_that_a_codec_has_not_raises(codec: Codec, level: int) -> None:
    with pytest.raises(ValueError, match=f"no compression level {level}"):
        compress(codec, TEXT, level)


def test_levels_have_kafkas_defaults() -> None:
    assert [resolve_level(codec, None) for codec in Codec] == [0, -1, 0, 9, 3]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [100 * KIB, 3 * MIB])
def test_output_is_allowed_up_to_the_limit(codec: Codec, size: int) -> None:
    packed = compress(codec, bytes(size))
    exactly = DecompressionLimits(bytes_max=size, ratio_max=10**6)
    too_little = DecompressionLimits(bytes_max=size - 1, ratio_max=10**6)

    assert decompress(codec, packed, exactly) == bytes(size)
    with pytest.raises(DecompressionTooLarge, match=f"{codec.name.lower()} .* {size - 1} bytes") as caught:
        decompress(codec, packed, too_little)
    assert caught.value.limit_bytes == size - 1


def test_limits_are_absolute_and_relative() -> None:
    limits = DecompressionLimits()
    assert limits.limit_bytes(0) == limits.limit_bytes(1000) == MIB, "small input is harmless at any ratio"
    assert limits.limit_bytes(2 * KIB) == 2_048_000
    assert limits.limit_bytes(10 * MIB) == 64 * MIB


def test_a_ratio_above_the_limit_raises() -> None:
    """Zstandard packs 16 MiB of zeros into less than 1 KiB."""
    packed = compress(Codec.ZSTD, bytes(16 * MIB))
    assert len(packed) < 2 * KIB
    with pytest.raises(DecompressionTooLarge):
        decompress(Codec.ZSTD, packed)


def test_a_high_ratio_of_little_data_is_allowed() -> None:
    packed = compress(Codec.ZSTD, bytes(MIB))
    assert len(packed) * 1000 < MIB
    assert decompress(Codec.ZSTD, packed) == bytes(MIB)


@pytest.mark.parametrize("codec", CODECS)
def test_input_that_is_cut_off_raises(codec: Codec) -> None:
    packed = compress(codec, TEXT[:2000])
    # Without the blocks after its header, a snappy stream is a whole one that holds nothing.
    whole = {16} if codec is Codec.SNAPPY else set()
    for cut in set(range(len(packed))) - whole:
        with pytest.raises(CorruptCompression, match=f"corrupt {codec.name.lower()} data"):
            decompress(codec, packed[:cut])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("tail", [b"x", b"\x00", bytes(8), b"some more bytes that are no frame"])
def test_bytes_after_the_end_raise(codec: Codec, tail: bytes) -> None:
    with pytest.raises(CorruptCompression):
        decompress(codec, compress(codec, TEXT[:2000]) + tail)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("garbage", [b"\x07", b"\xff" * 50, NOISE[:1000], b"plain text", TEXT])
def test_garbage_raises(codec: Codec, garbage: bytes) -> None:
    with pytest.raises(CorruptCompression):
        decompress(codec, garbage)


def test_gzip_of_other_writers_is_read() -> None:
    with_name = b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x02\x03name.txt\x00" + gzip.compress(TEXT)[10:]
    assert decompress(Codec.GZIP, gzip.compress(TEXT)) == TEXT
    assert decompress(Codec.GZIP, with_name) == TEXT


def test_gzip_members_add_up() -> None:
    two = gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])
    assert decompress(Codec.GZIP, two) == TEXT
    with pytest.raises(DecompressionTooLarge):
        decompress(Codec.GZIP, two, DecompressionLimits(bytes_max=len(TEXT) - 1))


def test_large_gzip_members_add_up_and_may_not_be_cut_off() -> None:
    two = gzip.compress(NOISE[:1000]) + gzip.compress(NOISE * 2)
    assert decompress(Codec.GZIP, two) == NOISE[:1000] + NOISE * 2
    for cut in (1, 9, 5000):
        with pytest.raises(CorruptCompression, match="cut off"):
            decompress(Codec.GZIP, two[:-cut])


def test_thousands_of_gzip_members_are_not_copied_again_for_each() -> None:
    """A batch of empty members took a second per megabyte, and four times as long for twice as much."""
    fed: list[int] = []

    class Inflate:
        def __init__(self, window_bits: int) -> None:
            self._real = zlib.decompressobj(window_bits)

        def decompress(self, piece: bytes, bytes_max: int) -> bytes:
            fed.append(len(piece))
            return self._real.decompress(piece, bytes_max)

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    members = gzip.compress(b"") * 2_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "zlib", SimpleNamespace(decompressobj=Inflate, error=zlib.error))
        assert decompress(Codec.GZIP, members) == b""
    assert sum(fed) <= len(members) + 2_000 * 4096


def test_a_gzip_checksum_is_checked() -> None:
    packed = bytearray(compress(Codec.GZIP, TEXT))
    packed[-5] ^= 1
    with pytest.raises(CorruptCompression, match="incorrect data check"):
        decompress(Codec.GZIP, bytes(packed))


def test_zlib_without_gzip_header_is_not_gzip() -> None:
    with pytest.raises(CorruptCompression):
        decompress(Codec.GZIP, zlib.compress(TEXT))


def raw_snappy(data: bytes) -> bytes:
    """Take the only block out of xerial's framing."""
    packed = compress_snappy(data)
    assert int.from_bytes(packed[16:20], "big") == len(packed) - 20
    return packed[20:]


def test_snappy_without_framing_is_read() -> None:
    """librdkafka writes one raw block."""
    assert decompress(Codec.SNAPPY, raw_snappy(TEXT[:1000])) == TEXT[:1000]


def test_snappy_is_framed_in_blocks_of_32_kib() -> None:
    packed = compress_snappy(bytes(70_000))
    sizes = []
    position = 16
    while position < len(packed):
        length = int.from_bytes(packed[position : position + 4], "big")
        block = packed[position + 4 : position + 4 + length]
        sizes.append(len(decompress(Codec.SNAPPY, block)))
        position += 4 + length
    assert sizes == [32768, 32768, 4464]


def test_an_empty_snappy_stream_is_its_header() -> None:
    assert compress_snappy(b"") == bytes.fromhex("82534e41505059000000000100000001")


def test_snappy_of_a_later_framing_version_is_read() -> None:
    packed = bytearray(compress_snappy(TEXT))
    packed[11] = packed[15] = 2
    assert decompress(Codec.SNAPPY, bytes(packed)) == TEXT
    packed[11] = 0
    with pytest.raises(CorruptCompression, match="version 0"):
        decompress(Codec.SNAPPY, bytes(packed))


@pytest.mark.parametrize("length", [0, -1, 2**31 - 1, -(2**31)])
def test_a_snappy_block_has_a_length_that_fits(length: int) -> None:
    packed = compress_snappy(TEXT[:1000])
    with pytest.raises(CorruptCompression, match=f"a block of {length} bytes"):
        decompress(Codec.SNAPPY, packed[:16] + pack(">i", length) + packed[20:])


def test_a_snappy_block_cannot_declare_more_than_snappy_can_hold() -> None:
    declares_4_gib = b"\xff\xff\xff\xff\x0f" + raw_snappy(b"x" * 100)[1:]
    with pytest.raises(CorruptCompression, match="cannot hold the 4294967295"):
        decompress(Codec.SNAPPY, declares_4_gib)
    with pytest.raises(CorruptCompression, match="no decompressed size"):
        decompress(Codec.SNAPPY, b"\xff" * 20)


@pytest.mark.parametrize("content_checksum", [True, False])
@pytest.mark.parametrize("block_checksum", [True, False])
@pytest.mark.parametrize("store_size", [True, False])
@pytest.mark.parametrize("block_size", [lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB])
def test_lz4_frames_of_other_writers_are_read(
    block_size: int, store_size: bool, block_checksum: bool, content_checksum: bool
) -> None:
    packed = lz4.frame.compress(
        TEXT + NOISE,
        block_size=block_size,
        block_linked=False,
        store_size=store_size,
        block_checksum=block_checksum,
        content_checksum=content_checksum,
    )
    assert decompress(Codec.LZ4, packed) == TEXT + NOISE


@pytest.mark.parametrize("level", [9, 12])
def test_our_lz4_frames_are_read_by_others(level: int) -> None:
    for data in (b"", TEXT, NOISE, TEXT + NOISE):
        assert lz4.frame.decompress(compress(Codec.LZ4, data, level)) == data


def test_lz4_blocks_that_depend_on_each_other_are_refused_as_by_kafka() -> None:
    packed = lz4.frame.compress(TEXT, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=True)
    assert not packed[4] & 0x20
    with pytest.raises(CorruptCompression, match="depend on each other"):
        decompress(Codec.LZ4, packed)


def test_what_lz4_cannot_compress_is_stored() -> None:
    packed = compress(Codec.LZ4, NOISE[:1000])
    assert packed[7:11] == pack("<I", 1000 | 0x80000000)
    assert packed[11:1011] == NOISE[:1000]


@pytest.mark.parametrize(
    ("at", "byte", "reason"),
    [
        (4, 0xA0, "unknown frame descriptor"),
        (4, 0x61, "unknown frame descriptor"),
        (4, 0x40, "depend on each other"),
        (5, 0x41, "unknown frame descriptor"),
        (5, 0x30, "unknown block size"),
        (5, 0x50, "wrong header checksum"),
        (6, 0x00, "wrong header checksum"),
        (9, 0x01, "a block of"),
    ],
)
def test_a_damaged_lz4_header_raises(at: int, byte: int, reason: str) -> None:
    packed = bytearray(compress(Codec.LZ4, TEXT[:1000]))
    packed[at] = byte
    with pytest.raises(CorruptCompression, match=reason):
        decompress(Codec.LZ4, bytes(packed))


@pytest.mark.parametrize("store_size", [True, False])
@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
def test_lz4_header_checksum_is_that_of_the_reference_library(block_size: int, store_size: bool) -> None:
    frame = lz4.frame.compress(TEXT, block_size=block_size, block_linked=False, store_size=store_size)
    end = 14 if store_size else 6
    assert header_checksum(frame[4:end]) == frame[end]


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("content_size", [True, False])
@pytest.mark.parametrize("data", [b"", TEXT[:100], TEXT[:1000], TEXT, TEXT * 8, bytes(2 * MIB)])
def test_zstd_frames_of_other_writers_are_read(data: bytes, content_size: bool, checksum: bool) -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=content_size, write_checksum=checksum)
    limits = DecompressionLimits(ratio_max=10**6)
    assert decompress(Codec.ZSTD, compressor.compress(data), limits) == data


def test_our_zstd_frames_are_read_by_others() -> None:
    for data in (b"", TEXT, NOISE):
        packed = compress(Codec.ZSTD, data)
        assert zstandard.ZstdDecompressor().decompressobj().decompress(packed) == data
        assert zstandard.get_frame_parameters(packed).content_size == zstandard.CONTENTSIZE_UNKNOWN


def test_zstd_frames_add_up() -> None:
    two = compress(Codec.ZSTD, TEXT[:1000]) + compress(Codec.ZSTD, TEXT[1000:])
    assert decompress(Codec.ZSTD, two) == TEXT


def test_a_zstd_checksum_is_checked() -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(TEXT))
    packed[-1] ^= 1
    with pytest.raises(CorruptCompression, match="checksum"):
        decompress(Codec.ZSTD, bytes(packed))


def test_a_zstd_frame_that_asks_for_a_dictionary_raises() -> None:
    dictionary = zstandard.train_dictionary(1024, [TEXT[at : at + 200] for at in range(0, 60_000, 200)])
    packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT[:1000])
    with pytest.raises(CorruptCompression):
        decompress(Codec.ZSTD, packed)


def test_a_zstd_run_of_four_bytes_stays_within_the_limit() -> None:
    """A block of one repeated byte takes 4 bytes and stands for 128 KiB: 60,000 of them for 7.3 GiB."""
    run = (128 * KIB << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"
    bomb = bytes.fromhex("28b52ffd0058") + run * 60_000 + bytes.fromhex("010000")
    with pytest.raises(DecompressionTooLarge):
        decompress(Codec.ZSTD, bomb)


def test_an_error_leaves_no_broken_context_behind() -> None:
    packed = compress(Codec.ZSTD, TEXT)
    damaged = packed[:9] + b"\xff" * 40 + packed[49:]
    for _ in range(10):
        with pytest.raises(CorruptCompression):
            decompress(Codec.ZSTD, damaged)
        assert decompress(Codec.ZSTD, packed) == TEXT
