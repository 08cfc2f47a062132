"""Batches of the source as a producer of the target sends them: the same records, in dense batches."""

import pytest

from ottla.mirror.maker.batches import Outgoing, outgoing_batches, stamped
from ottla.mirror.maker.offset_map import Run
from ottla.records.attributes import Codec
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.builder import build_batch
from ottla.records.codec import RecordTuple
from ottla.records.errors import RecordsError

LARGE = bytes(5000)


def _records(*offsets: int, value: bytes = b"v") -> list[RecordTuple]:
    return [(offset, 1000 + offset, b"k%d" % offset, value, (("h", None),)) for offset in offsets]


def _views(*batches: bytearray) -> list[BatchView]:
    return list(iter_batches(memoryview(b"".join(batches))))


def _read(item: Outgoing) -> list[RecordTuple]:
    (batch,) = iter_batches(memoryview(item.content))
    header = batch.header
    assert (header.count, header.last_offset_delta) == (item.records, item.records - 1)
    assert batch.crc_is_valid()
    return list(iter_batch_record_tuples(batch))


def _without_offsets(records: list[RecordTuple]) -> list[tuple[object, ...]]:
    return [record[1:] for record in records]


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_without_holes_passes_as_it_is(codec: Codec) -> None:
    records = _records(7, 8, 9, value=LARGE)
    source = build_batch(
        records, base_offset=7, codec=codec, producer_id=5, producer_epoch=1, base_sequence=3
    )
    (item,) = outgoing_batches(_views(source), 7)
    assert item.content[61:] == source[61:]
    assert item.runs == (Run(7, 0, 3),)
    sent = stamped(item.content, 4711, 2, 100)
    (batch,) = iter_batches(memoryview(sent))
    assert batch.crc_is_valid()
    header = batch.header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 2, 100)
    assert (header.base_offset, header.is_transactional, header.codec) == (0, True, codec)
    assert _without_offsets(_read(item)) == _without_offsets(records)


def test_what_compaction_left_is_built_again() -> None:
    records = _records(3, 4, 9)
    source = build_batch(records, base_offset=2, last_offset=11, delete_horizon_ms=77)
    (item,) = outgoing_batches(_views(source), 0)
    assert _without_offsets(_read(item)) == _without_offsets(records)
    assert item.runs == (Run(3, 0, 2), Run(9, 2, 1))


def test_the_time_of_an_append_becomes_the_time_of_the_records() -> None:
    source = build_batch(_records(0, 1, value=LARGE), append_time=123_456)
    (item,) = outgoing_batches(_views(source), 0)
    assert [record[1] for record in _read(item)] == [123_456, 123_456]


def test_records_before_the_position_are_left_out() -> None:
    (item,) = outgoing_batches(_views(build_batch(_records(0, 1, 2, value=LARGE))), 2)
    assert item.runs == (Run(2, 0, 1),)
    assert not list(outgoing_batches(_views(build_batch(_records(0, 1, 2))), 3))


def test_small_batches_travel_together_and_large_ones_alone() -> None:
    small = [build_batch(_records(offset), base_offset=offset) for offset in range(4)]
    large = build_batch(_records(4, value=LARGE), base_offset=4)
    items = list(outgoing_batches(_views(*small, large, small[0]), 0))
    assert [item.records for item in items] == [4, 1, 1]
    assert items[0].runs == (Run(0, 0, 4),)


def test_damaged_bytes_are_not_given_a_new_checksum() -> None:
    source = build_batch(_records(0, value=LARGE))
    source[-1] ^= 1
    with pytest.raises(RecordsError, match="checksum"):
        list(outgoing_batches(_views(source), 0))
