"""What an answer brings becomes records, and acknowledgements of what nobody is handed."""

from ottla.client.consumer.record import RecordMaker
from ottla.client.serializers import from_bytes, from_json
from ottla.client.share.record import AcknowledgeType, SharePartition, open_acquired
from ottla.model.uuid import Uuid
from ottla.records.builder import build_batch
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_fetch import AcquiredRecords, LeaderIdAndEpoch, PartitionData

WHERE = SharePartition(Uuid(bytes(16)), "queue", 0)


def _batch(*records: tuple[int, bytes]) -> bytes:
    return bytes(build_batch([(offset, 1000, None, value, ()) for offset, value in records]))


def _answer(records: bytes, *acquired: tuple[int, int, int]) -> PartitionData:
    return PartitionData(
        partition_index=0,
        acknowledge_error_code=ErrorCode.NONE,
        current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        records=memoryview(records),
        acquired_records=tuple(
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in acquired
        ),
    )


def test_only_acquired_records_are_handed_over() -> None:
    records = _batch((10, b"a"), (11, b"b"), (12, b"c")) + _batch((13, b"d"))
    opened = open_acquired(
        RecordMaker(from_bytes, from_bytes), WHERE, _answer(records, (10, 10, 2), (12, 13, 1))
    )
    assert [(record.value, record.offset, record.delivery_count) for record in opened.records] == [
        (b"a", 10, 2),
        (b"c", 12, 1),
        (b"d", 13, 1),
    ]
    assert (opened.unseen, opened.failure) == ([], None)


def test_offsets_without_records_are_gaps() -> None:
    records = _batch((10, b"a"), (14, b"b"))
    opened = open_acquired(RecordMaker(from_bytes, from_bytes), WHERE, _answer(records, (8, 20, 1)))
    assert [record.offset for record in opened.records] == [10, 14]
    gap = AcknowledgeType.GAP
    assert opened.unseen == [(8, 9, gap), (11, 13, gap), (15, 20, gap)]


def test_what_the_deserializer_does_not_take_is_released() -> None:
    records = _batch((0, b"1"), (1, b"{"), (2, b"3"))
    opened = open_acquired(RecordMaker(from_bytes, from_json), WHERE, _answer(records, (0, 2, 1)))
    assert [record.value for record in opened.records] == [1, 3]
    assert opened.unseen == [(1, 1, AcknowledgeType.RELEASE)]
    assert "offset 1 cannot be deserialized" in str(opened.failure)


def test_damaged_bytes_are_rejected() -> None:
    damaged = bytearray(_batch((1, b"b")))
    damaged[-2] ^= 1
    records = _batch((0, b"a")) + bytes(damaged)
    opened = open_acquired(RecordMaker(from_bytes, from_bytes), WHERE, _answer(records, (0, 1, 1)))
    assert [record.offset for record in opened.records] == [0]
    assert opened.unseen == [(1, 1, AcknowledgeType.REJECT)]
    assert "damaged" in str(opened.failure)
