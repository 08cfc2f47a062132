"""Messages of format 0 and 1, made here by hand. What old Kafka versions wrote is among the golden bytes."""

from struct import pack
from zlib import crc32

import pytest

from ottla.records.attributes import Codec
from ottla.records.batch import LegacyBatchView
from ottla.records.batch_records import iter_batch_records
from ottla.records.codec import Record
from ottla.records.compression import DecompressionLimits, compress
from ottla.records.errors import CorruptCompression, DecompressionTooLarge, InvalidRecord, UnknownCodec
from ottla.records.legacy import iter_legacy_records


def field(data: bytes | None) -> bytes:
    return pack(">i", -1) if data is None else pack(">i", len(data)) + data


def message(
    offset: int,
    magic: int,
    key: bytes | None,
    value: bytes | None,
    attributes: int = 0,
    timestamp: int = 1000,
) -> bytes:
    body = bytes([magic, attributes]) + (pack(">q", timestamp) if magic else b"") + field(key) + field(value)
    return pack(">qiI", offset, len(body) + 4, crc32(body)) + body


def wrapper(offset: int, magic: int, inner: bytes, codec: Codec = Codec.GZIP, attributes: int = 0) -> bytes:
    return message(offset, magic, None, compress(codec, inner), codec | attributes, timestamp=5000)


def records_of(data: bytes) -> list[Record]:
    return list(iter_batch_records(LegacyBatchView(memoryview(data))))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_is_its_own_record(magic: int) -> None:
    timestamp = 1000 if magic else -1
    assert records_of(message(7, magic, b"k", b"v")) == [Record(7, timestamp, b"k", b"v")]
    assert records_of(message(7, magic, None, None)) == [Record(7, timestamp, None, None)]
    assert records_of(message(7, magic, b"", b"")) == [Record(7, timestamp, b"", b"")]


def test_offsets_inside_format_0_are_absolute() -> None:
    inner = message(10, 0, b"a", b"1") + message(11, 0, b"b", None)
    assert [record.offset for record in records_of(wrapper(11, 0, inner))] == [10, 11]


@pytest.mark.parametrize("first", [0, 3])
def test_offsets_inside_format_1_are_relative_to_the_last(first: int) -> None:
    inner = (
        message(first, 1, b"a", b"1") + message(first + 1, 1, b"b", b"2") + message(first + 4, 1, b"c", b"3")
    )
    assert [record.offset for record in records_of(wrapper(104, 1, inner))] == [100, 101, 104]


def test_offsets_inside_a_wrapper_with_a_lower_one_are_absolute() -> None:
    inner = message(10, 1, b"a", b"1") + message(11, 1, b"b", b"2")
    assert [record.offset for record in records_of(wrapper(0, 1, inner))] == [10, 11]


def test_append_time_of_the_wrapper_is_that_of_all() -> None:
    inner = message(0, 1, b"a", b"1", timestamp=1) + message(1, 1, b"b", b"2", timestamp=2)
    assert [record.timestamp for record in records_of(wrapper(1, 1, inner))] == [1, 2]
    assert [record.timestamp for record in records_of(wrapper(1, 1, inner, attributes=8))] == [5000, 5000]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_all_codecs_of_the_time_are_read(magic: int, codec: Codec) -> None:
    inner = message(4, magic, b"a", b"1" * 500)
    timestamp = 1000 if magic else -1
    assert records_of(wrapper(4, magic, inner, codec)) == [Record(4, timestamp, b"a", b"1" * 500)]


def test_only_format_0_may_have_a_wrong_lz4_header_checksum() -> None:
    for magic in (0, 1):
        frame = bytearray(compress(Codec.LZ4, message(4, magic, b"a", b"1")))
        frame[6] ^= 0xFF
        data = message(4, magic, None, bytes(frame), Codec.LZ4)
        if magic == 0:
            assert [record.offset for record in records_of(data)] == [4]
        else:
            with pytest.raises(CorruptCompression, match="header checksum"):
                records_of(data)


def test_zstd_came_later() -> None:
    with pytest.raises(UnknownCodec):
        records_of(wrapper(4, 1, message(0, 1, b"a", b"1"), Codec.ZSTD))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_must_wrap_something(magic: int) -> None:
    with pytest.raises(InvalidRecord, match="without a value"):
        records_of(message(4, magic, None, None, Codec.GZIP))
    with pytest.raises(InvalidRecord, match="wraps none"):
        records_of(wrapper(4, magic, b""))


def test_nothing_is_wrapped_twice() -> None:
    with pytest.raises(InvalidRecord, match="record 1: compressed inside"):
        records_of(wrapper(4, 1, message(0, 1, b"a", b"1") + wrapper(1, 1, message(0, 1, b"a", b"1"))))


def test_a_wrapper_holds_messages_of_its_own_format() -> None:
    with pytest.raises(InvalidRecord, match="record 0: magic 0 inside a message of magic 1"):
        records_of(wrapper(4, 1, message(0, 0, b"a", b"1")))


def test_checksums_inside_are_checked() -> None:
    inner = bytearray(message(0, 1, b"a", b"1") + message(1, 1, b"b", b"2"))
    inner[-1] ^= 1
    with pytest.raises(InvalidRecord, match="record 1: wrong checksum"):
        records_of(wrapper(4, 1, bytes(inner)))


@pytest.mark.parametrize("cut", [1, 5, 20, 30])
def test_messages_inside_must_be_whole(cut: int) -> None:
    inner = message(0, 1, b"a", b"1") + message(1, 1, b"b", b"2")
    with pytest.raises(InvalidRecord, match="record 1: a message of"):
        records_of(wrapper(4, 1, inner[:-cut]))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (pack(">i", 100) + bytes(10), "a field of 100 bytes, 10 are left"),
        (field(b"k") + pack(">i", 100), "a field of 100 bytes, 0 are left"),
        (field(b"k") + field(b"v") + b"x", "1 bytes are left"),
        (field(b"long enough"), "cut off before the length"),
    ],
)
def test_fields_must_fill_their_message(fields: bytes, reason: str) -> None:
    body = bytes([0, 0]) + fields
    data = pack(">qiI", 0, len(body) + 4, crc32(body)) + body
    with pytest.raises(InvalidRecord, match=reason):
        records_of(data)


def test_wrappers_are_decompressed_within_a_bound() -> None:
    data = wrapper(4, 1, message(0, 1, b"a", bytes(100_000)))
    with pytest.raises(DecompressionTooLarge):
        list(iter_legacy_records(LegacyBatchView(memoryview(data)), DecompressionLimits(bytes_max=50_000)))
