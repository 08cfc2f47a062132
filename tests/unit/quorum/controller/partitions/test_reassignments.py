"""Partitions move to other brokers."""

from tests.support.deciding import DecidingController, registration

from ottla.quorum.controller.partitions.leadership import terms_of
from ottla.quorum.controller.partitions.partition_change import Target, change_partition
from ottla.quorum.controller.partitions.reassignments import decide_alter_reassignments, list_reassignments
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


def four_brokers() -> DecidingController:
    return DecidingController([registration(number) for number in range(4)])


def move(
    controller: DecidingController, replicas: tuple[int, ...] | None, *, may_change_factor: bool = True
) -> ErrorCode:
    one = ReassignablePartition(partition_index=0, replicas=replicas)
    ask = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change_factor,
        topics=(ReassignableTopic(name="t", partitions=(one,)),),
    )
    return controller.ask(decide_alter_reassignments, ask).responses[0].partitions[0].error_code


def in_sync(controller: DecidingController, *isr: int) -> None:
    """Do what the controller does when the leader tells who is in sync."""
    topic = controller.topic("t")
    partition = topic.partitions[0]
    record = change_partition(partition, Target(isr=isr), terms_of(controller.view, topic, partition))
    assert record is not None
    controller.replay(record)


def listed(controller: DecidingController) -> list[tuple[int, ...]]:
    answer = list_reassignments(controller.image, ListPartitionReassignmentsRequest())
    return [partition.replicas for topic in answer.topics for partition in topic.partitions]


def test_a_move_begins_with_old_and_new_replicas() -> None:
    controller = four_brokers()
    controller.have("t", (0, 1))
    assert move(controller, (2, 1)) is ErrorCode.NONE
    partition = controller.partition("t")
    assert partition.replicas == (2, 1, 0)
    assert (partition.adding_replicas, partition.removing_replicas) == ((2,), (0,))
    assert (partition.leader, partition.isr) == (0, (0, 1))
    assert listed(controller) == [(2, 1, 0)]


def test_a_move_completes_when_the_new_replica_is_in_sync() -> None:
    controller = four_brokers()
    controller.have("t", (0, 1))
    move(controller, (2, 1))
    in_sync(controller, 0, 1, 2)
    partition = controller.partition("t")
    assert (partition.replicas, partition.isr) == ((2, 1), (1, 2))
    assert partition.leader == 2, "the first of the new replicas that is in sync"
    assert listed(controller) == []


def test_a_move_is_cancelled_back_to_what_was() -> None:
    controller = four_brokers()
    controller.have("t", (0, 1))
    move(controller, (2, 3))
    assert move(controller, None) is ErrorCode.NONE
    partition = controller.partition("t")
    assert set(partition.replicas) == {0, 1}
    assert (partition.adding_replicas, partition.removing_replicas) == ((), ())
    assert move(controller, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_that_would_need_an_unclean_election_is_not_cancelled() -> None:
    controller = four_brokers()
    controller.have("t", (0, 1))
    move(controller, (2, 3))
    in_sync(controller, 2)
    assert move(controller, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_move_can_be_changed_on_the_way() -> None:
    controller = four_brokers()
    controller.have("t", (0,))
    move(controller, (1,))
    assert move(controller, (2,)) is ErrorCode.NONE
    partition = controller.partition("t")
    assert partition.replicas == (2, 0, 1)
    assert (partition.adding_replicas, partition.removing_replicas) == ((2,), (0, 1))


def test_the_replication_factor_stays_if_it_must() -> None:
    controller = four_brokers()
    controller.have("t", (0, 1))
    assert move(controller, (2,), may_change_factor=False) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert move(controller, (2, 3), may_change_factor=False) is ErrorCode.NONE
    assert move(controller, (1, 3), may_change_factor=False) is ErrorCode.NONE


def test_only_what_is_asked_about_is_listed() -> None:
    controller = four_brokers()
    controller.have("t", (0,), (0,))
    move(controller, (1,))
    wanted = ListPartitionReassignmentsTopics
    ask = ListPartitionReassignmentsRequest(
        topics=(wanted(name="t", partition_indexes=(0, 1)), wanted(name="other", partition_indexes=(0,)))
    )
    (topic,) = list_reassignments(controller.image, ask).topics
    assert [partition.partition_index for partition in topic.partitions] == [0]
    ask = ListPartitionReassignmentsRequest(topics=(wanted(name="t", partition_indexes=(1,)),))
    assert list_reassignments(controller.image, ask).topics == ()
