"""Who deletes records is answered when all living replicas have given them up, or when its time is over."""

from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler, Replica, ReplicaNode, partition_record
from tests.unit.storage.logs import NOW_MS, batch

from ottla.broker.replication.low_watermarks import LowWatermark, LowWatermarks
from ottla.model.ids import Offset
from ottla.wire.error_code import ErrorCode


class World:
    """A leader that has deleted its first five records, and two followers that have not."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        self.replica = Replica(ReplicaNode(1, self.clock, self.scheduler))
        self.replica.follow(partition_record(1, (1, 2, 3), replicas=3))
        self.replica.append(batch(5))
        assert self.replica.partition.leading is not None
        self.leading = self.replica.partition.leading
        self.waits = LowWatermarks(self.scheduler)
        for broker_id in (2, 3):
            self.fetch(broker_id, 0)
        self.replica.log.increment_log_start_offset(Offset(5))
        self.answer = self.waits.when_reached(self.replica.partition, 5, 1000)

    def fetch(self, broker_id: int, log_start: int) -> None:
        self.leading.note_fetch(self.leading.followers[broker_id], 5, log_start, 0, 100 + broker_id)
        self.waits.moved(self.replica.partition)


def test_the_answer_comes_with_the_last_follower() -> None:
    world = World()
    world.fetch(2, 5)
    assert not world.answer.is_done
    world.fetch(3, 5)
    assert world.answer.value() == LowWatermark(5)


def test_a_dead_broker_is_not_waited_for() -> None:
    world = World()
    world.fetch(2, 5)
    world.replica.node.dead.add(3)
    world.waits.moved(world.replica.partition)
    assert world.answer.value() == LowWatermark(5)


def test_without_a_living_follower_the_leader_is_enough() -> None:
    world = World()
    world.replica.node.dead |= {2, 3}
    world.waits.moved(world.replica.partition)
    assert world.answer.value() == LowWatermark(5)


def test_the_time_may_be_over_before() -> None:
    world = World()
    world.fetch(2, 5)
    world.clock.advance(1000)
    world.scheduler.run_once()
    assert world.answer.value() == LowWatermark(0, ErrorCode.REQUEST_TIMED_OUT)


def test_another_leader_ends_the_wait() -> None:
    world = World()
    world.replica.follow(partition_record(2, (1, 2, 3), 1, 1, replicas=3))
    world.waits.moved(world.replica.partition)
    assert world.answer.value().error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
