"""Brokers tell in which of their directories replicas lie."""

from tests.support.deciding import DecidingController, directory_of, registration

from ottla.metadata.directory_ids import LOST
from ottla.metadata.features import default_levels
from ottla.metadata.topics import NO_LEADER
from ottla.model.uuid import Uuid
from ottla.quorum.controller.brokers.directory_assignments import decide_assign_replicas_to_dirs
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryAssignment,
)

UNKNOWN = Uuid(b"no-such-topic-id")


def assign(
    controller: DecidingController, directory: Uuid, *replicas: tuple[Uuid, int], epoch: int | None = None
) -> AssignReplicasToDirsResponse:
    known = controller.image.brokers[0].broker_epoch
    topics = tuple(
        AssignedTopic(topic_id=topic_id, partitions=(AssignedPartition(partition_index=number),))
        for topic_id, number in replicas
    )
    ask = AssignReplicasToDirsRequest(
        broker_id=0,
        broker_epoch=known if epoch is None else epoch,
        directories=(DirectoryAssignment(id=directory, topics=topics),),
    )
    return controller.ask(decide_assign_replicas_to_dirs, ask)


def errors(answer: AssignReplicasToDirsResponse) -> list[ErrorCode]:
    return [
        partition.error_code
        for directory in answer.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]


def test_a_replica_lies_where_its_broker_says() -> None:
    controller = DecidingController([registration(0, directories=2), registration(1)])
    topic = controller.have("t", (1, 0))
    second = directory_of(0, 1)
    assert errors(assign(controller, second, (topic.id, 0))) == [ErrorCode.NONE]
    assert controller.partition("t").directories == (directory_of(1), second)
    assert (controller.partition("t").leader, controller.partition("t").leader_epoch) == (1, 0)
    assign(controller, second, (topic.id, 0))
    assert not controller.records, "what is known is not written again"


def test_each_replica_stands_for_itself() -> None:
    controller = DecidingController([registration(0, directories=2), registration(1)])
    mine, other = controller.have("mine", (0,)), controller.have("other", (1,))
    wanted = ((mine.id, 0), (mine.id, 9), (UNKNOWN, 0), (other.id, 0))
    assert errors(assign(controller, directory_of(0, 1), *wanted)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert len(controller.records) == 1


def test_a_broker_of_another_life_is_not_heard() -> None:
    controller = DecidingController()
    topic = controller.have("t", (0,))
    answer = assign(controller, directory_of(0, 1), (topic.id, 0), epoch=3)
    assert answer.error_code is ErrorCode.STALE_BROKER_EPOCH
    old = DecidingController(features=default_levels(16))
    topic = old.have("t", (0,))
    answer = assign(old, directory_of(0, 1), (topic.id, 0))
    assert answer.error_code is ErrorCode.UNSUPPORTED_VERSION


def test_a_replica_in_a_directory_that_is_lost_leads_no_longer() -> None:
    controller = DecidingController([registration(0), registration(1)])
    topic = controller.have("t", (0, 1))
    lost = directory_of(0, 1)
    assert errors(assign(controller, lost, (topic.id, 0))) == [ErrorCode.NONE]
    partition = controller.partition("t")
    assert (partition.leader, partition.isr) == (1, (1,))
    assert partition.directories[0] == lost


def test_a_replica_that_is_lost_is_no_eligible_leader() -> None:
    controller = DecidingController([registration(0), registration(1)])
    topic = controller.have("t", (0, 1), min_insync_replicas="2")
    assign(controller, LOST, (topic.id, 0))
    partition = controller.partition("t")
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas or ()) == (1, (1,), ())


def test_the_only_replica_leads_again_when_its_directory_is_back() -> None:
    controller = DecidingController([registration(0, directories=2), registration(1)])
    topic = controller.have("t", (0,))
    assign(controller, LOST, (topic.id, 0))
    assert controller.partition("t").leader == NO_LEADER
    assign(controller, directory_of(0, 1), (topic.id, 0))
    assert controller.partition("t").leader == 0
