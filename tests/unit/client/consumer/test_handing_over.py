"""From chunks to records: in order, each once, with the position moving along."""

import pytest

from ottla.client.consumer.assignment import Assignment, Chunk, NotAssigned, Position, Status
from ottla.client.consumer.handing_over import HandingOver
from ottla.client.consumer.record import RecordMaker, Undeserializable
from ottla.client.errors import BrokerError
from ottla.client.fetching import FetchedPartition, IsolationLevel
from ottla.client.serializers import Deserializer, from_bytes, from_json
from ottla.model.ids import TopicPartition
from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.wire.error_code import ErrorCode

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
MARKER = EndTxnMarker(is_commit=True, coordinator_epoch=0)


class World:
    """An assignment of two partitions, and what takes records out of it."""

    def __init__(self, value_deserializer: Deserializer = from_bytes) -> None:
        self.changes = 0
        self.assignment = Assignment(self._changed)
        self.assignment.replace([P0, P1], Status.NEEDS_RESET)
        for state in self.assignment:
            state.seek(Position(0))
        maker = RecordMaker(from_bytes, value_deserializer)
        self.records = HandingOver(self.assignment, maker)

    def _changed(self) -> None:
        self.changes += 1

    def arrive(self, where: TopicPartition, *batches: bytes | bytearray) -> None:
        data = memoryview(b"".join(batches))
        state = self.assignment.state(where)
        fetched = FetchedPartition(where, state.fetch_offset, ErrorCode.NONE, 99, 99, 0, (), data)
        state.add(Chunk(fetched, IsolationLevel.READ_COMMITTED))

    def take(self, count: int) -> list[tuple[int, int]]:
        return [(record.partition, record.offset) for record in self.records.take(count)]

    def position(self, where: TopicPartition) -> Position:
        return self.assignment.state(where).position


def _batch(offset: int, count: int, values: bytes = b"1", codec: Codec = Codec.NONE) -> bytearray:
    return build_batch(
        [Record(offset + step, 1000 + step, b"k", values) for step in range(count)],
        base_offset=offset,
        leader_epoch=4,
        codec=codec,
    )


def test_records_come_in_order_and_the_position_follows() -> None:
    world = World()
    world.arrive(P0, _batch(0, 3), _batch(3, 2, codec=Codec.LZ4))
    assert world.take(2) == [(0, 0), (0, 1)]
    assert world.position(P0) == Position(2, 4)
    assert world.take(9) == [(0, 2), (0, 3), (0, 4)]
    assert world.position(P0) == Position(5, 4)
    assert world.take(9) == []


def test_one_by_one_is_the_same_as_many_at_once() -> None:
    world = World()
    world.arrive(P0, _batch(0, 3), _batch(3, 2))
    taken = []
    while (record := world.records.take_one()) is not None:
        assert world.position(P0).offset == record.offset + 1
        taken.append(record.offset)
    assert taken == [0, 1, 2, 3, 4]


def test_a_record_knows_where_it_lies() -> None:
    world = World()
    world.arrive(P0, _batch(0, 1))
    record = world.records.take(1)[0]
    assert record.where == P0
    assert (record.offset, record.timestamp_ms, record.key, record.value) == (0, 1000, b"k", b"1")
    assert (record.leader_epoch, record.headers) == (4, ())


def test_records_before_the_position_are_left_out() -> None:
    world = World()
    world.assignment.state(P0).seek(Position(2))
    world.arrive(P0, _batch(0, 4))
    assert world.take(9) == [(0, 2), (0, 3)]


def test_the_position_goes_past_what_is_not_for_readers() -> None:
    world = World()
    marker = build_end_txn_batch(MARKER, timestamp=1, producer_id=1, producer_epoch=0, base_offset=2)
    world.arrive(P0, _batch(0, 2), marker)
    assert world.take(9) == [(0, 0), (0, 1)]
    assert world.position(P0).offset == 3
    assert world.changes == 2, "the fetcher learns that there is room again"


def test_each_partition_gets_its_turn() -> None:
    world = World()
    world.arrive(P0, _batch(0, 4))
    world.arrive(P1, _batch(0, 4))
    assert world.take(4) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert world.take(3) == [(1, 0), (1, 1), (1, 2)]
    world.arrive(P0, _batch(4, 1))
    assert world.take(9) == [(1, 3), (0, 4)]


def test_a_paused_partition_keeps_what_it_has() -> None:
    world = World()
    world.arrive(P0, _batch(0, 1))
    world.assignment.state(P0).is_paused = True
    assert world.take(9) == []
    world.assignment.state(P0).is_paused = False
    assert world.take(9) == [(0, 0)]


def test_a_seek_throws_away_what_was_fetched() -> None:
    world = World()
    world.arrive(P0, _batch(0, 3))
    world.take(1)
    state = world.assignment.state(P0)
    state.seek(Position(7))
    assert world.take(9) == []
    assert (state.fetch_offset, state.buffered_bytes) == (7, 0)


def test_damage_is_told_after_everything_before_it() -> None:
    world = World()
    bad = _batch(2, 2)
    bad[-1] ^= 1
    world.arrive(P0, _batch(0, 2), bad)
    assert world.take(9) == [(0, 0), (0, 1)]
    for _ in range(2):
        with pytest.raises(BrokerError, match="damaged bytes at or after 2"):
            world.take(9)
    assert world.position(P0).offset == 2


def test_a_record_that_cannot_be_deserialized_is_told_and_can_be_skipped() -> None:
    world = World(from_json)
    batch = build_batch([Record(0, 1, None, b"1"), Record(1, 1, None, b"{"), Record(2, 1, None, b"3")])
    world.arrive(P0, batch)
    assert [record.value for record in world.records.take(9)] == [1]
    with pytest.raises(Undeserializable, match="t-0 offset 1 cannot be deserialized: seek to 2") as raised:
        world.take(9)
    world.assignment.state(raised.value.where).seek(Position(raised.value.offset + 1))
    world.arrive(P0, batch)
    assert [record.value for record in world.records.take(9)] == [3]


def test_what_stays_assigned_keeps_its_position() -> None:
    world = World()
    world.arrive(P0, _batch(0, 3))
    world.take(2)
    world.assignment.replace([P0], Status.NEEDS_COMMITTED)
    assert world.take(9) == [(0, 2)]
    with pytest.raises(NotAssigned, match="t-1 is not assigned"):
        world.assignment.state(P1)
