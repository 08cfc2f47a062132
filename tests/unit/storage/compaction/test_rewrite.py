"""Single batches of which some records go: what stays as it was, and delete horizons."""

import pytest
from tests.unit.records.reading import scan_batch
from tests.unit.storage.compaction.rewritten import rewrite

from ottla.records.attributes import Codec
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record

NOW = 1_700_000_000_000
RECORDS = [Record(100 + index, NOW + index * 10, b"key-%d" % index, b"value " * 20) for index in range(5)]
OFFSETS = [record.offset for record in RECORDS]


def view(batch: bytes | bytearray) -> BatchView:
    (whole,) = iter_batches(memoryview(batch))
    assert whole.crc_is_valid()
    return whole


@pytest.mark.parametrize("codec", Codec)
def test_rewriting_keeps_what_later_readers_rely_on(codec: Codec) -> None:
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

    rewritten = view(rewrite(batch, {record.offset for record in kept}))

    assert list(iter_batch_records(rewritten)) == kept
    assert (rewritten.base_offset, rewritten.last_offset) == (100, 104)
    assert (rewritten.base_sequence, rewritten.last_sequence) == (batch.base_sequence, batch.last_sequence)
    assert (rewritten.producer_id, rewritten.producer_epoch, rewritten.leader_epoch) == (7, 1, 3)
    assert (rewritten.codec, rewritten.is_transactional, rewritten.is_control) == (codec, True, False)
    assert (rewritten.base_timestamp, rewritten.max_timestamp) == (NOW + 10, NOW + 30)
    assert rewritten.count == 2


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = view(build_batch(RECORDS, base_offset=100))
    horizon = NOW + 86_400_000

    rewritten = view(rewrite(batch, OFFSETS, horizon))

    assert rewritten.delete_horizon_ms == rewritten.base_timestamp == horizon
    assert rewritten.max_timestamp == batch.max_timestamp
    assert list(iter_batch_records(rewritten)) == RECORDS, "the deltas are negative now"
    assert all(timestamp_delta < 0 for _, timestamp_delta, _, _ in scan_batch(rewritten))


def test_a_delete_horizon_is_not_moved() -> None:
    batch = view(build_batch(RECORDS, base_offset=100, delete_horizon_ms=NOW + 50))
    rewritten = view(rewrite(batch, OFFSETS[:1], NOW + 1000))
    assert rewritten.delete_horizon_ms == NOW + 50
    assert list(iter_batch_records(rewritten)) == RECORDS[:1]
