"""Reports of where replicas lie reach a controller, also if there is none for a while."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.deferred import Deferred
from ottla.broker.logs.directory_reports import DirectoryReports
from ottla.metadata.directory_ids import LOST
from ottla.metadata.image import EMPTY_IMAGE
from ottla.metadata.topics import NO_LEADER, Topic, Topics
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignedPartitionResult,
    AssignedTopicResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryAssignmentResult,
)
from ottla.wire.metadata_records.partitions import PartitionRecord

TOPIC, DIRECTORY = Uuid(b"topic-0000000001"), Uuid(b"directory-000001")
ELSEWHERE = Uuid(b"directory-000002")


class Replica:
    """As much of a partition as a report needs."""

    topic_id = TOPIC
    is_leader = False
    leader_epoch = 4

    def __init__(self, index: int) -> None:
        self.index = index
        self.syncs: list[int] = []

        def request(_log: object, offset: int, _waiter: object) -> None:
            self.syncs.append(offset)

        self.log = SimpleNamespace(
            recovery_point=10,
            high_watermark=10,
            log_end_offset=12,
            volume=SimpleNamespace(syncs=SimpleNamespace(request=request)),
        )


class World:
    """A loop, a broker with two partitions, and a controller that the test plays."""

    def __init__(self) -> None:
        self.due: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.later: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.asked: list[tuple[AssignReplicasToDirsRequest, Deferred[Any]]] = []
        self.partitions = [Replica(index) for index in range(2)]
        meta = SimpleNamespace(directory_id=DIRECTORY)
        broker = SimpleNamespace(
            node_id=1,
            image=EMPTY_IMAGE,
            broker_epoch=5,
            controller=self,
            directories=SimpleNamespace(directory_of=lambda _log: SimpleNamespace(meta=meta)),
            partitions=SimpleNamespace(by_key={(TOPIC, one.index): one for one in self.partitions}),
        )
        self.broker = broker
        self.reports = DirectoryReports(broker, self)  # type: ignore[arg-type]

    def call_soon(self, work: Callable[..., None], *arguments: Any) -> None:
        self.due.append((work, arguments))

    def call_later(self, _delay_ms: float, work: Callable[..., None], *arguments: Any) -> None:
        self.later.append((work, arguments))

    def run(self) -> None:
        """Do what is due, and what waits for a while, once each."""
        self.due += self.later
        self.later = []
        while self.due:
            work, arguments = self.due.pop(0)
            work(*arguments)

    def ask(self, ask: AssignReplicasToDirsRequest, _caller: object = None) -> Deferred[Any]:
        self.asked.append((ask, Deferred()))
        return self.asked[-1][1]

    def answer(self, error_code: ErrorCode) -> list[int]:
        """Answer the oldest report, and return the partitions that it names."""
        ask, response = self.asked.pop(0)
        response.resolve(AssignReplicasToDirsResponse(error_code=error_code, directories=()))
        (directory,) = ask.directories
        return [one.partition_index for topic in directory.topics for one in topic.partitions]


def make_world() -> World:
    world = World()
    for partition in world.partitions:
        world.reports.add(partition)  # type: ignore[arg-type]
    world.run()
    return world


def test_replicas_are_reported_together() -> None:
    world = make_world()
    assert world.answer(ErrorCode.NONE) == [0, 1]
    world.run()
    assert world.asked == []


@pytest.mark.parametrize("refusal", [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_a_report_that_was_refused_is_sent_again(refusal: ErrorCode) -> None:
    world = make_world()
    assert world.answer(refusal) == [0, 1]
    world.run()
    assert world.answer(ErrorCode.NONE) == [0, 1]


def test_nothing_is_reported_again_if_the_metadata_knows_no_directories() -> None:
    world = make_world()
    assert world.answer(ErrorCode.UNSUPPORTED_VERSION) == [0, 1]
    world.run()
    assert world.asked == []


def test_a_report_waits_until_the_broker_is_registered() -> None:
    world = World()
    world.broker.broker_epoch = -1
    world.reports.add(world.partitions[0])  # type: ignore[arg-type]
    world.run()
    assert world.asked == []
    world.broker.broker_epoch = 7
    world.reports.registered()
    world.reports.add(world.partitions[1])  # type: ignore[arg-type]
    world.run()
    assert world.asked[0][0].broker_epoch == 7
    assert world.answer(ErrorCode.NONE) == [0, 1]
    world.run()
    assert world.asked == []


def test_a_partition_that_is_gone_is_not_reported_again() -> None:
    world = make_world()
    world.answer(ErrorCode.NOT_CONTROLLER)
    del world.broker.partitions.by_key[TOPIC, 0]
    world.run()
    assert world.answer(ErrorCode.NONE) == [1]


def lose(world: World, *, isr: tuple[int, ...], leader: int, eligible: tuple[int, ...] = ()) -> None:
    """Let the metadata say that the replica of partition 0 was lost."""
    record = PartitionRecord(
        topic_id=TOPIC,
        replicas=(1, 2),
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        leader=leader,
        leader_epoch=0,
        directories=(LOST, DIRECTORY),
        eligible_leader_replicas=eligible,
    )
    topics = Topics({TOPIC: Topic("orders", TOPIC, {0: record})}, {"orders": TOPIC})
    world.broker.image = EMPTY_IMAGE._replace(topics=topics)


def test_a_lost_replica_is_reported_when_the_leader_takes_it_for_in_sync_again() -> None:
    world = World()
    lose(world, isr=(2,), leader=2)
    world.reports.add(world.partitions[0])  # type: ignore[arg-type]
    world.run()
    world.run()
    assert world.asked == []
    lose(world, isr=(2, 1), leader=2)
    world.run()
    assert world.answer(ErrorCode.NONE) == [0]


@pytest.mark.parametrize("is_led_by_another", [False, True])
def test_a_replica_that_a_late_fetch_has_made_in_sync_is_reported_when_it_has_caught_up(
    is_led_by_another: bool,
) -> None:
    world = World()
    lose(world, isr=(2, 1), leader=2)
    replica: Any = world.partitions[0]
    world.reports.is_to_be_cut(replica)
    world.reports.add(replica)
    world.run()
    world.run()
    assert world.asked == []
    if is_led_by_another:
        replica.leader_epoch += 1
    else:
        world.reports.caught_up(replica)
    world.run()
    assert world.answer(ErrorCode.NONE) == [0]


def test_a_lost_replica_is_synced_before_it_is_reported() -> None:
    world = World()
    lose(world, isr=(2, 1), leader=2)
    replica = world.partitions[0]
    replica.log.recovery_point = 9
    world.reports.add(replica)  # type: ignore[arg-type]
    world.run()
    assert (world.asked, replica.syncs) == ([], [12])
    replica.log.recovery_point = 12
    world.run()
    assert world.answer(ErrorCode.NONE) == [0]


def test_a_lost_replica_whose_partition_nobody_leads_is_reported_unless_it_is_eligible() -> None:
    world = World()
    lose(world, isr=(), leader=NO_LEADER, eligible=(1, 2))
    world.reports.add(world.partitions[0])  # type: ignore[arg-type]
    world.run()
    assert world.asked == []
    lose(world, isr=(), leader=NO_LEADER, eligible=(2,))
    world.run()
    assert world.answer(ErrorCode.NONE) == [0]


def test_a_replica_that_cannot_be_reached_is_reported_as_lost() -> None:
    world = World()
    world.reports.add_lost(TOPIC, 1)
    world.run()
    assert world.asked[0][0].directories[0].id == LOST
    assert world.answer(ErrorCode.NOT_CONTROLLER) == [1]
    world.run()
    assert world.asked[0][0].directories[0].id == LOST
    assert world.answer(ErrorCode.NONE) == [1]


def test_what_has_changed_is_not_reported_before_the_last_report_is_answered() -> None:
    world = World()
    replica = world.partitions[0]
    world.reports.add(replica)  # type: ignore[arg-type]
    world.run()
    # The controller cannot be reached for a while. Whatever is sent meanwhile could overtake this one.
    world.reports.add_lost(TOPIC, 0)
    world.run()
    assert len(world.asked) == 1
    world.answer(ErrorCode.NONE)
    world.run()
    assert world.asked[0][0].directories[0].id == LOST


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_report_that_was_refused_is_not_sent_again_if_it_is_not_true_any_more(is_lost: bool) -> None:
    world = World()
    replica = world.partitions[0]
    world.reports.add(replica) if is_lost else world.reports.add_lost(TOPIC, 0)  # type: ignore[arg-type]
    world.run()
    world.reports.add_lost(TOPIC, 0) if is_lost else world.reports.add(replica)  # type: ignore[arg-type]
    world.answer(ErrorCode.NOT_CONTROLLER)
    world.run()
    ((ask, _),) = world.asked
    assert [one.id for one in ask.directories] == [LOST if is_lost else DIRECTORY]
    world.answer(ErrorCode.NONE)
    world.run()
    assert world.asked == []


def test_a_report_on_which_the_controller_failed_is_sent_again() -> None:
    world = make_world()
    _, response = world.asked.pop()
    response.fail(RuntimeError("a bug"))
    world.run()
    assert world.answer(ErrorCode.NONE) == [0, 1]


def announced(world: World) -> list[str]:
    """Announce that partition 0 is about to lie elsewhere, and return what the mover is told."""
    told: list[str] = []
    target = SimpleNamespace(meta=SimpleNamespace(directory_id=ELSEWHERE))
    known = partial(told.append, "known")
    world.reports.announce(world.partitions[0], target, known)  # type: ignore[arg-type]
    world.run()
    return told


def directories_asked(world: World) -> list[Uuid]:
    return [one.id for one in world.asked[0][0].directories]


def test_a_mover_learns_that_the_controller_knows_the_new_place() -> None:
    world = World()
    told = announced(world)
    assert directories_asked(world) == [ELSEWHERE]
    world.answer(ErrorCode.NOT_CONTROLLER)
    assert told == []
    world.run()
    assert directories_asked(world) == [ELSEWHERE]
    world.answer(ErrorCode.NONE)
    assert told == ["known"]


def test_a_place_that_the_controller_refuses_is_announced_again() -> None:
    world = World()
    told = announced(world)
    _, response = world.asked.pop()
    refused = AssignedPartitionResult(partition_index=0, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    topic = AssignedTopicResult(topic_id=TOPIC, partitions=(refused,))
    directories = (DirectoryAssignmentResult(id=ELSEWHERE, topics=(topic,)),)
    response.resolve(AssignReplicasToDirsResponse(directories=directories))
    assert told == []
    world.run()
    world.answer(ErrorCode.NONE)
    assert told == ["known"]


def test_what_was_withdrawn_is_reported_from_where_it_is() -> None:
    world = World()
    told = announced(world)
    world.reports.withdraw(world.partitions[0])  # type: ignore[arg-type]
    # The announcement is under way: the answer to it tells nobody, and is followed by the other report.
    world.answer(ErrorCode.NONE)
    world.run()
    assert directories_asked(world) == [DIRECTORY]
    assert told == []
