"""An answer goes out when everything it acknowledges is committed, and says so if it never will be."""

from typing import Any

from tests.support.group_world import ManualClock, topic_id
from tests.support.replicas import ManualScheduler, ReplicaNode
from tests.unit.storage.logs import NOW_MS, append, batch, new_log
from tests.unit.storage.manual_syncs import ManualSyncs

from ottla.broker.logs.partition import Partition
from ottla.broker.produce.delayed_produce import DelayedProduces
from ottla.broker.serving.replies import EncodedResponse
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.syncing import committed
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.wire.metadata_records.partitions import PartitionRecord

ENCODED = EncodedResponse(b"encoded")
ME, OTHER = 1, 2


class World:
    """Two partitions of a topic, each with one record, and somebody who waits for both."""

    def __init__(self, *in_sync: int, timeout_ms: int = 1000) -> None:
        self.syncs = ManualSyncs()
        self.clock = ManualClock(0)
        self.delayed = DelayedProduces(self.clock)
        self.partitions = [self._partition(index, in_sync or (ME,)) for index in range(2)]
        self.answer = self.delayed.wait(self.partitions, timeout_ms, respond, ENCODED)

    def _partition(self, index: int, in_sync: tuple[int, ...]) -> Partition:
        log = new_log()
        log.volume.syncs = self.syncs
        watcher = ReplicaNode(ME, self.clock, ManualScheduler(self.clock))
        partition = Partition("orders", topic_id("orders"), index, log, watcher)
        partition.follow(record(ME, in_sync), ME)
        partition.append(memoryview(batch()), NOW_MS)
        return partition

    @property
    def errors(self) -> list[ErrorCode]:
        response: Any = self.answer.value()
        return [answer.error_code for answer in response.responses[0].partition_responses]

    def replicate(self, index: int) -> None:
        log = self.partitions[index].log
        log.update_high_watermark(log.log_end_offset)


def record(leader: int, in_sync: tuple[int, ...], leader_epoch: int = 0) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic_id("orders"),
        replicas=(ME, OTHER),
        isr=in_sync,
        removing_replicas=(),
        adding_replicas=(),
        leader=leader,
        leader_epoch=leader_epoch,
    )


def respond() -> ProduceResponse:
    answers = tuple(PartitionProduceResponse(partition_index=index, base_offset=0) for index in range(2))
    return ProduceResponse(responses=(TopicProduceResponse(name="orders", partition_responses=answers),))


def test_an_encoded_answer_waits_for_all_logs() -> None:
    world = World()
    (first, second) = world.syncs.waiting
    world.syncs.waiting = [first]
    world.syncs.sync()
    assert not world.answer.is_done
    world.syncs.waiting = [second]
    world.syncs.sync()
    assert world.answer.value() is ENCODED
    assert not world.delayed.pending


def test_without_an_encoded_answer_one_is_made() -> None:
    world = World()
    answer = world.delayed.wait(world.partitions, 1000, respond)
    world.syncs.sync()
    assert answer.value() == respond()


def test_an_answer_waits_for_the_replicas_and_for_the_disk() -> None:
    world = World(ME, OTHER)
    assert set(world.syncs.asked) == {one.log for one in world.partitions}, (
        "a sync runs while followers fetch"
    )
    assert world.syncs.waiting == []
    world.replicate(0)
    world.replicate(1)
    assert not world.answer.is_done
    world.syncs.sync()
    assert world.answer.value() is ENCODED


def test_a_sync_alone_commits_nothing() -> None:
    world = World(ME, OTHER)
    for partition in world.partitions:
        partition.log.flush()
    world.replicate(0)
    world.syncs.sync()
    assert not world.answer.is_done


def test_a_leader_that_lost_its_partition_does_not_know_what_becomes_of_the_record() -> None:
    world = World(ME, OTHER)
    world.partitions[1].follow(record(OTHER, (ME, OTHER), leader_epoch=1), ME)
    world.replicate(0)
    world.syncs.sync()
    assert world.errors == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_what_too_few_replicas_have_is_said_to_be_appended_only() -> None:
    world = World(ME, OTHER)
    world.partitions[0].in_sync_replicas_min = 2
    for index in range(2):
        world.replicate(index)
    world.partitions[0].follow(record(ME, (ME,)), ME)
    world.syncs.sync()
    assert world.errors == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NONE]


def test_a_log_that_is_gone_spoils_its_own_partition_only() -> None:
    world = World()
    gone = world.partitions[1].log
    committed.wait_no_more(gone, LogDirectoryOffline(gone.path, "deleted"))
    world.syncs.sync()
    assert world.errors == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]


def test_those_who_wait_for_a_log_that_moves_wait_for_the_new_one() -> None:
    world = World(ME, OTHER)
    old, new = world.partitions[0].log, new_log()
    new.volume.syncs = other_syncs = ManualSyncs()
    append(new)
    world.partitions[0].log = new
    committed.wait_on_in(old, new)
    for index in range(2):
        world.replicate(index)
    world.syncs.sync()
    assert not world.answer.is_done
    other_syncs.fail()
    assert world.errors == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_a_request_that_waits_for_too_long_is_told_so() -> None:
    world = World()
    (first, second) = world.syncs.waiting
    world.syncs.waiting = [first]
    world.syncs.sync()
    world.syncs.waiting = [second]
    world.clock.advance(1001)
    world.delayed.sweep()
    assert world.errors == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
    world.syncs.sync()
