"""Which decoder a consumer gets, and what an all-at-once decoder says of numbers that are not short."""

import pytest

from ottla.records.bulk import IS_COMPILED, decode_all, decode_quickly
from ottla.records.codec import Record, encode_records, iter_record_tuples
from ottla.records.errors import InvalidRecord


def test_the_faster_decoder_is_taken() -> None:
    assert decode_quickly is (decode_all if IS_COMPILED else iter_record_tuples)


def test_a_negative_length_of_a_record_is_refused() -> None:
    with pytest.raises(InvalidRecord):
        decode_all(bytes.fromhex("0d" + "00" * 6), 1, 0, 0)


def test_long_numbers_between_short_ones_are_read() -> None:
    made = [
        Record(0, 1000, b"k", b"v" * 10),
        Record(1, 1000 + 86_400_000, None, b"v" * 100_000, (("trace", b"1"),)),
        Record(2_000_000, 1001, b"k" * 9000, None),
        Record(2_000_001, 999, b"", b""),
    ]
    area = encode_records(made, 0, 1000)
    assert decode_all(area, 4, 0, 1000) == [tuple(record) for record in made]
