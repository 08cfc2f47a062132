"""Batches built, recompressed, filtered and emptied."""

import pytest

from ottla.records.attributes import Codec, TimestampType
from ottla.records.batch import HEADER_BYTES, BatchView, iter_batches, unpack_header
from ottla.records.batch_records import iter_batch_records, scan_batch
from ottla.records.builder import (
    build_batch,
    build_numbered_batch,
    empty_batch,
    filter_batch,
    recompress_batch,
)
from ottla.records.codec import Record, encode_fields
from ottla.records.compression import DecompressionLimits
from ottla.records.errors import DecompressionTooLarge

NOW = 1_700_000_000_000
RECORDS = [Record(100 + index, NOW + index * 10, b"key-%d" % index, b"value " * 20) for index in range(5)]


def view(batch: bytes | bytearray) -> BatchView:
    (whole,) = iter_batches(memoryview(batch))
    assert whole.crc_is_valid()
    return whole


def test_defaults_are_those_of_a_producer_without_idempotence() -> None:
    header = unpack_header(build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW + 5, b"k", b"v")]))

    assert (header.base_offset, header.last_offset, header.count) == (0, 1, 2)
    assert (header.leader_epoch, header.producer_id, header.producer_epoch, header.base_sequence) == (-1,) * 4
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW + 5)
    assert header.attributes == 0


def test_max_timestamp_is_the_greatest_wherever_it_is() -> None:
    records = [
        Record(index, timestamp, None, b"v") for index, timestamp in enumerate((NOW, NOW + 9, NOW - 9))
    ]
    header = unpack_header(build_batch(records))
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


@pytest.mark.parametrize("target", Codec)
@pytest.mark.parametrize("source", Codec)
def test_recompression_changes_nothing_else(source: Codec, target: Codec) -> None:
    batch = view(
        build_batch(
            RECORDS,
            base_offset=100,
            codec=source,
            producer_id=7,
            producer_epoch=1,
            base_sequence=5,
            leader_epoch=3,
            is_transactional=True,
        )
    )

    recompressed = recompress_batch(batch, target)

    assert list(iter_batch_records(view(recompressed))) == RECORDS
    assert recompress_batch(view(recompressed), source) == batch.view
    changed = {"batch_length": 0, "crc": 0, "attributes": 0}
    assert unpack_header(recompressed)._replace(**changed) == batch.header._replace(**changed)
    assert unpack_header(recompressed).is_transactional


def test_recompression_is_bounded() -> None:
    batch = view(build_batch(RECORDS, base_offset=100, codec=Codec.ZSTD))
    with pytest.raises(DecompressionTooLarge):
        recompress_batch(batch, Codec.GZIP, limits=DecompressionLimits(bytes_max=100))


@pytest.mark.parametrize("codec", Codec)
def test_filtering_keeps_what_later_readers_rely_on(codec: Codec) -> None:
    batch = view(
        build_batch(
            RECORDS,
            base_offset=100,
            codec=codec,
            producer_id=7,
            producer_epoch=1,
            base_sequence=2**31 - 2,
            leader_epoch=3,
            is_transactional=True,
        )
    )
    kept = [RECORDS[1], RECORDS[3]]

    filtered = view(filter_batch(batch, kept))

    assert list(iter_batch_records(filtered)) == kept
    assert (filtered.base_offset, filtered.last_offset) == (100, 104)
    assert (filtered.base_sequence, filtered.last_sequence) == (batch.base_sequence, batch.last_sequence)
    assert (filtered.producer_id, filtered.producer_epoch, filtered.leader_epoch) == (7, 1, 3)
    assert (filtered.codec, filtered.is_transactional, filtered.is_control) == (codec, True, False)
    assert (filtered.base_timestamp, filtered.max_timestamp) == (NOW + 10, NOW + 30)
    assert filtered.count == 2


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = view(build_batch(RECORDS, base_offset=100))
    horizon = NOW + 86_400_000

    filtered = view(filter_batch(batch, RECORDS, horizon))

    assert filtered.delete_horizon_ms == filtered.base_timestamp == horizon
    assert filtered.max_timestamp == batch.max_timestamp
    assert list(iter_batch_records(filtered)) == RECORDS, "the deltas are negative now"
    assert all(timestamp_delta < 0 for _, timestamp_delta, _, _ in scan_batch(filtered))


def test_a_delete_horizon_is_not_moved() -> None:
    batch = view(build_batch(RECORDS, base_offset=100, delete_horizon_ms=NOW + 50))
    filtered = view(filter_batch(batch, RECORDS[:1], NOW + 1000))
    assert filtered.delete_horizon_ms == NOW + 50
    assert list(iter_batch_records(filtered)) == RECORDS[:1]


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
