"""Batches built and emptied."""

import pytest
from tests.unit.records.reading import header_of, scan_batch

from ottla.records.attributes import Codec, TimestampType
from ottla.records.batch import HEADER_BYTES, BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch, build_numbered_batch, empty_batch
from ottla.records.codec import Record, encode_fields

NOW = 1_700_000_000_000
RECORDS = [Record(100 + index, NOW + index * 10, b"key-%d" % index, b"value " * 20) for index in range(5)]


def view(batch: bytes | bytearray) -> BatchView:
    (whole,) = iter_batches(memoryview(batch))
    assert whole.crc_is_valid()
    return whole


def test_defaults_are_those_of_a_producer_without_idempotence() -> None:
    header = header_of(build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW + 5, b"k", b"v")]))

    assert (header.base_offset, header.last_offset, header.count) == (0, 1, 2)
    assert (header.leader_epoch, header.producer_id, header.producer_epoch, header.base_sequence) == (-1,) * 4
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW + 5)
    assert header.attributes == 0


def test_max_timestamp_is_the_greatest_wherever_it_is() -> None:
    records = [
        Record(index, timestamp, None, b"v") for index, timestamp in enumerate((NOW, NOW + 9, NOW - 9))
    ]
    header = header_of(build_batch(records))
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW + 9)


@pytest.mark.parametrize("codec", Codec)
def test_built_batches_are_read_again(codec: Codec) -> None:
    batch = view(build_batch(RECORDS, base_offset=100, codec=codec))
    assert batch.codec is codec
    assert list(iter_batch_records(batch)) == RECORDS
    assert [scanned[0] for scanned in scan_batch(batch)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [1, 70, 5_000])
def test_numbered_batches_are_those_of_the_same_records(codec: Codec, count: int) -> None:
    pairs = [(b"key-%d" % index, None if index % 3 else b"v" * index) for index in range(count)]
    records = [Record(index, NOW, key, value) for index, (key, value) in enumerate(pairs)]
    fields = [encode_fields(key, value) for key, value in pairs]
    assert build_numbered_batch(fields, NOW, codec=codec) == build_batch(records, codec=codec)


def test_numbered_batches_say_whose_they_are() -> None:
    fields = [encode_fields(b"k", None)]
    batch = build_numbered_batch(fields, NOW, producer_id=7, producer_epoch=3, is_transactional=True)
    expected = build_batch(
        [Record(0, NOW, b"k", None)], producer_id=7, producer_epoch=3, is_transactional=True
    )
    assert batch == expected


def test_append_time_is_the_time_of_all_records() -> None:
    batch = view(build_batch(RECORDS, base_offset=100, append_time=NOW + 500))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.max_timestamp == NOW + 500
    assert {record.timestamp for record in iter_batch_records(batch)} == {NOW + 500}


def test_a_batch_can_end_after_its_last_record() -> None:
    batch = view(build_batch(RECORDS[:2], base_offset=90, last_offset=120))
    assert (batch.base_offset, batch.last_offset, batch.count) == (90, 120, 2)
    assert [record.offset for record in iter_batch_records(batch)] == [100, 101]


@pytest.mark.parametrize("codec", Codec)
def test_an_emptied_batch_is_its_header(codec: Codec) -> None:
    batch = view(
        build_batch(
            RECORDS,
            base_offset=100,
            codec=codec,
            producer_id=7,
            producer_epoch=1,
            base_sequence=5,
            leader_epoch=3,
            is_transactional=True,
            delete_horizon_ms=NOW + 50,
        )
    )

    emptied = view(empty_batch(batch.header))

    assert emptied.size_bytes == HEADER_BYTES
    assert (emptied.count, emptied.base_timestamp, emptied.codec) == (0, -1, Codec.NONE)
    assert emptied.delete_horizon_ms is None
    kept = ("base_offset", "last_offset", "max_timestamp", "producer_id", "producer_epoch", "last_sequence")
    for name in (*kept, "leader_epoch", "is_transactional"):
        assert getattr(emptied, name) == getattr(batch, name), name
    assert list(iter_batch_records(emptied)) == []
    assert list(scan_batch(emptied)) == []


def test_a_batch_without_records_is_not_built() -> None:
    with pytest.raises(AssertionError, match="empty_batch"):
        build_batch([])
