"""Single records: numbers, nulls, limits, and what is said of a bad one."""

import pytest
from tests.unit.records.reading import decode_records

from ottla.records.codec import (
    Record,
    decode_varint,
    decode_varlong,
    encode_records,
    encode_varint,
    iter_records,
    scan_records,
)
from ottla.records.errors import InvalidRecord

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8191, "fe7f"),
        (-8192, "ff7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_numbers_are_zigzag_varints(number: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode_varint(number) == data
    assert decode_varint(data, 0, len(data), 0) == (number, len(data))
    assert decode_varlong(data, 0, len(data), 0) == (number, len(data))


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(INT64_MAX, "feffffffffffffffff01"), (INT64_MIN, "ffffffffffffffffff01")],
)
def test_the_widest_numbers_take_ten_bytes(number: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode_varint(number) == data
    assert decode_varlong(data, 0, len(data), 0) == (number, len(data))


def test_a_number_that_is_too_long_raises() -> None:
    with pytest.raises(InvalidRecord, match="record 3: a number of more than 5 bytes"):
        decode_varint(b"\x80" * 5 + b"\x00", 0, 6, 3)
    with pytest.raises(InvalidRecord, match="more than 10 bytes"):
        decode_varlong(b"\x80" * 10 + b"\x00", 0, 11, 3)


def test_a_number_that_is_cut_off_raises() -> None:
    with pytest.raises(InvalidRecord, match="record 7: cut off within a number"):
        decode_varint(b"\x80\x80", 0, 2, 7)
    with pytest.raises(InvalidRecord, match="cut off"):
        decode_varint(b"\x80\x00", 0, 1, 7)


def record_bytes(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


SMALLEST = bytes.fromhex("0c000000010100")
"""A record without key, value or headers."""


def test_the_smallest_record_has_seven_bytes() -> None:
    assert encode_records([Record(5, 9, None, None)], 5, 9) == SMALLEST
    assert decode_records(SMALLEST, 1, 5, 9) == [Record(5, 9, None, None)]


def test_null_and_empty_are_kept_apart() -> None:
    records = [Record(0, 0, b"", None, (("", None), ("", b""))), Record(1, 0, None, b"")]
    assert decode_records(encode_records(records, 0, 0), 2, 0, 0) == records


def test_any_negative_length_is_a_null() -> None:
    """Kafka writes -1 only, but reads -5 as a null too."""
    data = record_bytes(bytes.fromhex("000000") + encode_varint(-5) + encode_varint(-8000) + b"\x00")
    assert decode_records(data, 1, 0, 0) == [Record(0, 0, None, None)]
    assert list(scan_records(data, 1)) == [(0, 0, False, False)]


@pytest.mark.parametrize("size", [63, 64, 127, 128, 4095, 4096, 8191, 8192, 1_100_000])
def test_sizes_at_the_edges_of_a_varint_survive(size: int) -> None:
    records = [
        Record(0, 0, b"k" * size, b"v"),
        Record(1, 0, None, b"v" * size),
        Record(2, 0, b"k" * size, b"v" * size, (("h" * size, b"w" * size),)),
    ]
    assert decode_records(encode_records(records, 0, 0), 3, 0, 0) == records


@pytest.mark.parametrize("delta", [63, 64, 4095, 4096, 8191, 8192, 2**31 - 1])
def test_offset_deltas_at_the_edges_of_a_varint_survive(delta: int) -> None:
    records = [Record(100 + delta, 0, b"k", b"v")]
    data = encode_records(records, 100, 0)
    assert decode_records(data, 1, 100, 0) == records
    assert list(scan_records(data, 1)) == [(delta, 0, True, True)]


@pytest.mark.parametrize(
    "delta", [-1, -64, -65, -8192, -8193, 63, 64, 8191, 8192, 2**31, 2**40, -(2**40), INT64_MAX, INT64_MIN]
)
def test_timestamp_deltas_of_all_sizes_survive(delta: int) -> None:
    records = [Record(0, delta, b"k", b"v"), Record(1, 0, b"k", b"v")]
    data = encode_records(records, 0, 0)
    assert decode_records(data, 2, 0, 0) == records
    assert [timestamp_delta for _, timestamp_delta, _, _ in scan_records(data, 2)] == [delta, 0]


@pytest.mark.parametrize("base", [INT64_MAX, INT64_MIN, INT64_MAX - 8191, INT64_MIN + 8191])
def test_timestamps_overflow_as_in_java(base: int) -> None:
    """Whatever is in the bytes, a timestamp that was read can be written again."""
    data = encode_records([Record(0, 100, None, b"v"), Record(1, -100, None, b"v")], 0, 0)
    timestamps = [record.timestamp for record in decode_records(data, 2, 0, base)]

    assert timestamps == [wrapped(base + 100), wrapped(base - 100)]
    records = decode_records(data, 2, 0, base)
    assert decode_records(encode_records(records, 0, base), 2, 0, base) == records


def wrapped(number: int) -> int:
    return int.from_bytes((number % 2**64).to_bytes(8, "big"), "big", signed=True)


def test_append_time_stands_for_all_timestamps() -> None:
    records = [Record(0, 5, b"k", b"v"), Record(1, 10_000_000, b"k", b"v")]
    data = encode_records(records, 0, 0)
    assert [record.timestamp for record in decode_records(data, 2, 0, 0, 77)] == [77, 77]


def test_header_keys_that_are_no_text_are_kept() -> None:
    body = bytes.fromhex("000000 01 01 02 06 ff41fe 02 76")
    data = record_bytes(body)
    (record,) = decode_records(data, 1, 0, 0)

    assert record.headers == (("\udcffA\udcfe", b"v"),)
    assert encode_records([record], 0, 0) == data


def test_a_header_key_that_cannot_be_written_raises() -> None:
    good = Record(0, 0, None, None)
    with pytest.raises(InvalidRecord, match="record 1: the header key"):
        encode_records([good, Record(1, 0, None, None, (("\ud800", None),))], 0, 0)


@pytest.mark.parametrize("offset", [-1, 2**31])
def test_an_offset_outside_the_batch_cannot_be_written(offset: int) -> None:
    good = Record(0, 0, None, None)
    with pytest.raises(InvalidRecord, match=f"record 2: offset {offset} "):
        encode_records([good, good, Record(offset, 0, None, None)], 0, 0)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("00 00 00 01 01", "a record of 5 bytes"),
        ("00 00 00 02 6b 01 00 ff", "bytes are left after its last field"),
        ("00 00 00 14 6b 01 00", "a field of 10 bytes, 3 are left"),
        ("00 00 00 01 08 6b 00", "a field of 4 bytes, 2 are left"),
        ("00 00 00 01 01 01 00", "-1 headers"),
        ("00 00 00 01 01 04 00", "2 headers in 1 bytes"),
        ("00 00 00 01 01 02 01 01", "a header without a key"),
        ("00 00 00 01 01 02 0a 61", "a field of 5 bytes, 1 are left"),
        ("00 80 80 80 80 80 80 80 80 80 80 00 00 01 01 00", "more than 10 bytes"),
        ("00 00 80 80 80 80 80 80 01 01 00", "more than 5 bytes"),
        ("00 00 00 01 01 80", "cut off within a number"),
    ],
)
def test_a_bad_record_is_named_with_its_reason(body: str, reason: str) -> None:
    data = SMALLEST * 2 + record_bytes(bytes.fromhex(body)) + SMALLEST

    for decode in (lambda: decode_records(data, 4, 0, 0), lambda: list(scan_records(data, 4))):
        with pytest.raises(InvalidRecord, match=reason) as caught:
            decode()
        assert caught.value.index == 2


@pytest.mark.parametrize("length", ["01", "ff7f", "ffffffff0f"])
def test_a_record_of_negative_length_raises(length: str) -> None:
    with pytest.raises(InvalidRecord, match="a record of -"):
        decode_records(bytes.fromhex(length) + bytes(20), 1, 0, 0)


@pytest.mark.parametrize("length", ["7e", "fe7f", "808008", "feffffff0f"])
def test_a_record_longer_than_the_batch_raises(length: str) -> None:
    with pytest.raises(InvalidRecord, match="20 are left"):
        decode_records(bytes.fromhex(length) + bytes(20), 1, 0, 0)


def test_records_before_a_bad_one_are_given_first() -> None:
    walk = iter_records(SMALLEST * 2 + b"\x80", 3, 0, 0)
    assert [next(walk), next(walk)] == [Record(0, 0, None, None)] * 2
    with pytest.raises(InvalidRecord, match="record 2"):
        next(walk)


@pytest.mark.parametrize("count", [3, 2**31 - 1])
def test_a_declared_count_is_not_believed(count: int) -> None:
    with pytest.raises(InvalidRecord, match="record 2: no bytes are left"):
        decode_records(SMALLEST * 2, count, 0, 0)


def test_a_negative_count_raises() -> None:
    with pytest.raises(InvalidRecord, match="declares -1 records"):
        decode_records(SMALLEST, -1, 0, 0)
    with pytest.raises(InvalidRecord, match="declares -1 records"):
        list(scan_records(SMALLEST, -1))


def test_bytes_after_the_last_declared_record_raise() -> None:
    with pytest.raises(InvalidRecord, match="record 1: 7 bytes are left"):
        decode_records(SMALLEST * 2, 1, 0, 0)
    with pytest.raises(InvalidRecord, match="record 1: 7 bytes are left"):
        list(scan_records(SMALLEST * 2, 1))


def test_overlong_numbers_mean_what_they_mean_to_kafka() -> None:
    """Bits beyond the 32nd are dropped, and zeros may be padded."""
    body = bytes.fromhex("00 808000 8000 8280808070 6b 01 00")
    assert decode_records(record_bytes(body), 1, 0, 0) == [Record(0, 0, b"k", None)]
