"""A partition as its shard sees it: batches, syncs, and what is read back."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.group_world import ManualClock, topic_id
from tests.unit.storage.logs import new_log
from tests.unit.storage.manual_syncs import ManualSyncs

from ottla.broker.coordinators.shard_log import HELD_MIN, PartitionShardLog
from ottla.broker.logs.partition import Partition, Role
from ottla.coordination.group.offsets.committed_offsets import commit_record, offset_tombstone
from ottla.coordination.runtime.decision import Decision, ProducerIdentity
from ottla.coordination.runtime.shard import CannotAppend, Shard, ShardStatus
from ottla.model.ids import LeaderEpoch, Offset, TopicPartition
from ottla.model.uuid import ZERO_UUID
from ottla.records.attributes import Codec
from ottla.records.batch import BatchView, iter_batches
from ottla.records.builder import build_batch, build_numbered_batch
from ottla.records.codec import encode_fields
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.config import LogConfig
from ottla.storage.read import ReadLimit
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.world.disk import DiskError, Reason

NOW_MS = 1_750_000_000_000
PRODUCER = ProducerIdentity(7, 1)


class Watcher:
    """Nobody waits for the partition, and there is no other replica."""

    replicating: Any = None

    def appended(self, partition: Partition, size_bytes: int) -> None:
        raise AssertionError

    appended_for_replicas = appended

    def flush_is_due(self, partition: Partition) -> None:
        raise AssertionError

    def damaged(self, partition: Partition, offset: Offset) -> None:
        raise AssertionError


class Keys:
    """A state that is the list of keys it was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def replay(self, records: Iterable[CoordinatorRecord], producer: ProducerIdentity | None) -> None:
        self.told += [(record.key.partition, record.value is not None, producer) for record in records]

    def replay_marker(self, producer: ProducerIdentity, committed: bool) -> None:
        self.told.append((producer, committed))

    def activate(self, now_ms: int) -> None:
        """Nothing to start."""

    def deactivate(self) -> None:
        """Nothing to stop."""


class Choosy(Keys):
    """A state that cannot take one of them."""

    def replay(self, records: Iterable[CoordinatorRecord], producer: ProducerIdentity | None) -> None:
        for record in records:
            if record.key.partition == 666:
                raise KeyError("666")
            self.told.append((record.key.partition, record.value is not None, producer))


class World:
    """A shard over a log on a simulated disk."""

    def __init__(self, config: LogConfig | None = None, codec: Codec = Codec.NONE) -> None:
        self.codec = codec
        self.log = new_log(config or LogConfig(is_compacted=True, verifies_transactions=False))
        self.partition = Partition("__consumer_offsets", topic_id("offsets"), 0, self.log, Watcher())
        self.partition.role = Role.LEADER
        self.partition.leader_epoch = LeaderEpoch(0)
        self.partition.in_sync = frozenset((1,))
        self.partition.replicas = (1,)
        self.log.volume.syncs = self.syncs = ManualSyncs()
        self.answers: list[object] = []
        self.at_end: list[Callable[[], None]] = []
        self.restart()

    def restart(self, state: type[Keys] = Keys) -> None:
        clock = ManualClock(NOW_MS)
        self.shard_log = PartitionShardLog(
            self.partition, GROUP_RECORDS, clock, self.at_end.append, self.codec
        )
        self.shard = Shard(0, 1, state(), self.shard_log)
        self.shard_log.shard = self.shard
        self.shard_log.when_refused = lambda: self.answers.append("refused")
        for _ in self.shard.load():
            pass
        self.shard.activate(0)

    def write(
        self, *records: CoordinatorRecord, producer: ProducerIdentity | None = None, is_atomic: bool = True
    ) -> None:
        self.shard.write(
            lambda _: Decision(records, "done", is_atomic=is_atomic),
            self.answers.append,
            self.answers.append,
            producer,
        )

    def end_turn(self) -> None:
        at_end, self.at_end[:] = self.at_end[:], []
        for action in at_end:
            action()

    def sync(self) -> None:
        self.end_turn()
        self.syncs.sync()

    def batches(self) -> list[BatchView]:
        self.end_turn()
        found, offset = [], self.log.log_start_offset
        while offset < self.log.log_end_offset:
            data = self.log.read(offset, 1 << 20, ReadLimit.LOG_END).read()
            for batch in iter_batches(memoryview(data)):
                found.append(batch)
                offset = Offset(batch.last_offset + 1)
        return found


def commit(partition: int) -> CoordinatorRecord:
    return commit_record("group", "orders", partition, 5, 0, "", 1, -1, ZERO_UUID)


def test_what_is_decided_in_one_turn_is_one_batch() -> None:
    world = World()
    world.write(commit(0), commit(1))
    world.write(commit(2))
    assert world.log.log_end_offset == 0
    assert world.shard.written_offset == 2, "the offsets are known before"
    world.end_turn()
    world.write(commit(3))
    assert [batch.count for batch in world.batches()] == [3, 1]
    assert [batch.header.producer_id for batch in world.batches()] == [-1, -1]
    assert world.log.high_watermark == 4
    assert world.shard.written_offset == 3


def test_in_a_long_turn_the_disk_works_alongside() -> None:
    world = World()
    for partition in range(2 * HELD_MIN):
        world.write(commit(partition))
    assert world.log.log_end_offset == HELD_MIN, "while it syncs, the rest is held back"
    assert world.shard.written_offset == 2 * HELD_MIN - 1
    world.syncs.sync()
    assert world.answers == ["done"] * HELD_MIN
    assert [batch.count for batch in world.batches()] == [HELD_MIN, HELD_MIN]
    world.sync()
    assert world.answers == ["done"] * 2 * HELD_MIN


def test_a_turn_without_decisions_writes_nothing() -> None:
    world = World()
    world.write()
    assert world.at_end == []
    assert world.answers == ["done"]


def test_a_turn_is_cut_where_the_topic_takes_no_more() -> None:
    world = World(LogConfig(is_compacted=True, max_message_bytes=1_000))
    for partition in range(40):
        world.write(commit(2 * partition), commit(2 * partition + 1))
    sizes = [len(batch.view) for batch in world.batches()]
    assert len(sizes) > 1
    assert max(sizes) <= 1_000
    assert all(batch.count % 2 == 0 for batch in world.batches()), "a decision is never cut"
    assert sum(batch.count for batch in world.batches()) == 80
    assert world.shard.written_offset == world.log.log_end_offset - 1 == 79


def test_what_may_fit_when_it_is_compressed_is_tried() -> None:
    world = World(LogConfig(is_compacted=True, max_message_bytes=1_000), Codec.GZIP)
    world.write(commit(0))
    world.write(*[commit(partition) for partition in range(100)])
    world.write(commit(1))
    assert [batch.count for batch in world.batches()] == [1, 100, 1]
    world.sync()
    assert world.answers == ["done"] * 3


def test_a_transaction_has_batches_of_its_own() -> None:
    world = World()
    world.write(commit(0))
    world.write(commit(1), producer=PRODUCER)
    world.write(commit(2))
    assert [batch.header.producer_id for batch in world.batches()] == [-1, 7, -1]
    assert [batch.header.base_offset for batch in world.batches()] == [0, 1, 2]
    assert world.shard.written_offset == 2


def test_a_marker_comes_after_what_is_held_back() -> None:
    world = World()
    world.write(commit(0))
    world.shard.write_out()
    assert world.log.log_end_offset == 1
    world.shard.end_transaction(PRODUCER, True, 1)
    with pytest.raises(AssertionError):
        world.shard.end_transaction(PRODUCER, True, 1)


def test_a_write_that_fails_at_the_end_of_the_turn_ends_the_shard() -> None:
    world = World()
    world.write(commit(0))
    world.write(commit(1))
    world.log.volume.fail(DiskError("somewhere", "write", Reason.OTHER, "it broke"))
    world.end_turn()
    assert world.answers == [ErrorCode.NOT_COORDINATOR] * 2 + ["refused"]
    assert world.shard.status is ShardStatus.FAILED
    assert world.log.log_end_offset == 0


def test_a_batch_that_is_refused_at_the_end_of_the_turn_ends_the_shard() -> None:
    world = World()
    world.write(commit(0))
    world.log.config = LogConfig(is_compacted=True, verifies_transactions=False, max_message_bytes=80)
    world.end_turn()
    assert world.answers == [ErrorCode.NOT_COORDINATOR, "refused"]
    assert world.shard.status is ShardStatus.FAILED
    assert world.log.log_end_offset == 0


def test_everybody_hears_of_a_write_that_fails_within_a_turn() -> None:
    world = World()
    for partition in range(HELD_MIN - 1):
        world.write(commit(partition))
    world.log.volume.fail(DiskError("somewhere", "write", Reason.OTHER, "it broke"))
    world.write(commit(HELD_MIN))
    waited = [ErrorCode.NOT_COORDINATOR] * (HELD_MIN - 1)
    assert world.answers == [*waited, "refused", ErrorCode.NOT_COORDINATOR]
    assert world.shard.status is ShardStatus.FAILED
    assert len(world.shard.state.told) == HELD_MIN - 1, "what was refused is not replayed"


def test_nothing_is_written_on_top_of_what_failed() -> None:
    world = World()
    world.write(commit(0))
    world.partition.role = Role.FOLLOWER
    world.shard.write_out()
    world.partition.role = Role.LEADER
    assert world.shard.status is ShardStatus.FAILED
    with pytest.raises(CannotAppend):
        world.shard_log.append((commit(1),), PRODUCER, True)
    assert world.log.log_end_offset == 0


def test_what_a_shard_that_resigned_held_back_is_dropped() -> None:
    world = World()
    world.write(commit(0))
    world.shard.resign()
    world.end_turn()
    assert world.answers == [ErrorCode.NOT_COORDINATOR]
    assert world.log.log_end_offset == 0
    assert world.syncs.waiting == []


def test_answers_wait_for_the_sync_and_share_it() -> None:
    world = World()
    for partition in range(3):
        world.write(commit(partition))
    assert world.answers == []
    world.sync()
    assert world.answers == ["done"] * 3, "the sync covers all that was there when it began"
    assert world.syncs.syncs == 1


def test_what_comes_during_a_sync_waits_for_the_next() -> None:
    world = World()
    world.write(commit(0))
    world.end_turn()
    ((log, waiter),) = world.syncs.waiting
    world.syncs.waiting = []
    ticket = log.start_flush()
    assert ticket is not None
    world.write(commit(1))
    world.end_turn()
    assert world.syncs.waiting == [], "one sync at a time"
    log.finish_flush(ticket)
    waiter(None)
    assert world.answers == ["done"]
    world.syncs.sync()
    assert world.answers == ["done", "done"]


def test_without_syncs_answers_do_not_wait() -> None:
    world = World()
    world.log.config = replace(world.log.config, acks_all_sync=False)
    world.write(commit(0))
    world.end_turn()
    assert world.answers == ["done"]
    assert world.syncs.waiting == []


def test_a_failed_sync_ends_the_shard() -> None:
    world = World()
    world.write(commit(0))
    world.end_turn()
    world.syncs.fail()
    assert world.answers == [ErrorCode.NOT_COORDINATOR]
    assert world.shard.status is ShardStatus.FAILED


def test_who_does_not_lead_does_not_write() -> None:
    world = World()
    world.partition.role = Role.FOLLOWER
    world.write(commit(0))
    assert world.answers == [ErrorCode.NOT_COORDINATOR]
    world.partition.role = Role.LEADER
    world.partition.in_sync_replicas_min = 2
    world.write(commit(0))
    assert world.answers[1] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.log.log_end_offset == 0


def test_what_is_too_large_for_the_topic_is_refused_whole() -> None:
    world = World(LogConfig(is_compacted=True, max_message_bytes=1_000))
    world.write(*[commit(partition) for partition in range(50)])
    assert world.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert world.log.log_end_offset == 0


def test_what_does_not_belong_together_is_cut_to_size() -> None:
    world = World(LogConfig(is_compacted=True, max_message_bytes=1_000))
    records = [offset_tombstone("group", TopicPartition("orders", number)) for number in range(50)]
    world.write(*records, is_atomic=False)
    assert len(world.batches()) > 1
    assert all(len(batch.view) <= 1_000 for batch in world.batches())
    assert sum(batch.count for batch in world.batches()) == 50
    world.sync()
    assert world.answers == ["done"]
    assert world.shard.state.told == [(number, False, None) for number in range(50)]


def test_a_shard_is_loaded_as_it_was_written() -> None:
    world = World()
    world.write(commit(0), commit(1))
    world.write(commit(2), producer=PRODUCER)
    marker = build_end_txn_batch(EndTxnMarker(True, 0), timestamp=NOW_MS, producer_id=7, producer_epoch=2)
    world.partition.append(memoryview(marker), NOW_MS, AppendOrigin.COORDINATOR)
    world.write(offset_tombstone("group", TopicPartition("orders", 0)))
    world.sync()
    world.restart()
    assert world.shard.state.told == [
        (0, True, None), (1, True, None), (2, True, PRODUCER), (ProducerIdentity(7, 2), True),
        (0, False, None),
    ]  # fmt: skip
    assert world.shard.written_offset == world.log.log_end_offset - 1


def test_records_of_the_future_are_skipped() -> None:
    world = World()
    unknown = build_batch([(0, NOW_MS, b"\x03\xe7 a key of type 999", b"\0\0", ())])
    world.partition.append(memoryview(unknown), NOW_MS, AppendOrigin.COORDINATOR)
    world.write(commit(0))
    world.sync()
    world.restart()
    assert world.shard.state.told == [(0, True, None)]


def test_a_record_that_cannot_be_read_is_left_out_loudly(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    key = GROUP_RECORDS.encode_key(commit(0).key)
    good = encode_fields(key, GROUP_RECORDS.encode_value(commit(0).value, 3))
    broken = build_numbered_batch([encode_fields(key, b"\0\4 not a value"), good], NOW_MS)
    world.partition.append(memoryview(broken), NOW_MS, AppendOrigin.COORDINATOR)
    world.write(commit(1))
    world.sync()
    world.restart()
    assert world.shard.state.told == [(0, True, None), (1, True, None)]
    assert world.shard_log.left_out == 1
    assert "skipped a record that cannot be loaded: offset 0 of <Partition" in caplog.text


def test_what_the_state_cannot_replay_is_left_out() -> None:
    world = World()
    world.write(commit(0), commit(666), commit(2), commit(666), commit(4))
    world.write(commit(5))
    world.sync()
    world.shard.state.told.clear()
    world.restart(Choosy)
    assert [told[0] for told in world.shard.state.told] == [0, 2, 4, 5]
    assert world.shard_log.left_out == 2


def test_a_batch_with_a_wrong_checksum_is_left_out() -> None:
    world = World()
    for partition in range(3):
        world.write(commit(partition))
        world.end_turn()
    file = world.log.active_segment.file
    second = world.batches()[1]
    position = len(world.batches()[0].view) + len(second.view) - 1
    file.write(position, [bytes([second.view[-1] ^ 1])])
    world.restart()
    assert [told[0] for told in world.shard.state.told] == [0, 2]
    assert world.shard_log.left_out == 1


def test_garbage_of_every_shape_is_left_out() -> None:
    """Cut and changed bytes of real records, in both topics' formats, never keep a shard from loading."""
    chance = random.Random(7)
    world = World()
    key = GROUP_RECORDS.encode_key(commit(0).key)
    value = GROUP_RECORDS.encode_value(commit(0).value, 3)
    for _ in range(300):
        batch = [
            encode_fields(_damaged(key, chance), _damaged(value, chance))
            for _ in range(chance.randrange(1, 5))
        ]
        world.partition.append(
            memoryview(build_numbered_batch(batch, NOW_MS)), NOW_MS, AppendOrigin.COORDINATOR
        )
    world.write(commit(7))
    world.sync()
    world.restart()
    assert world.shard.status is ShardStatus.ACTIVE
    assert world.shard.state.told[-1] == (7, True, None)
    assert world.shard_log.left_out > 50


def _damaged(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(4)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed[: chance.randrange(len(changed) + 1)] if chance.random() < 0.4 else changed)


def test_cannot_append_tells_the_code() -> None:
    assert CannotAppend(ErrorCode.NOT_ENOUGH_REPLICAS).error_code is ErrorCode.NOT_ENOUGH_REPLICAS
