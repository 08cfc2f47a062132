"""The leader of a partition says which replicas are in sync."""

from typing import Any

import pytest
from tests.support.deciding import DecidingController, registration

from ottla.metadata.topics import RECOVERED, RECOVERING
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.controller.brokers.heartbeat import decide_heartbeat
from ottla.quorum.controller.partitions.alter_partition import decide_alter_partition
from ottla.quorum.controller.partitions.reassignments import decide_alter_reassignments
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest


def four_brokers(**changes: Any) -> DecidingController:
    controller = DecidingController([registration(number) for number in range(4)], **changes)
    controller.have("t", (0, 1, 2), min_insync_replicas="2")
    return controller


def send(controller: DecidingController, *partitions: AlterPartitionPartition, leader: int = 0) -> Any:
    topic = AlterPartitionTopic(topic_id=controller.topic("t").id, partitions=partitions)
    ask = AlterPartitionRequest(broker_id=leader, broker_epoch=100 + leader, topics=(topic,))
    return controller.ask(decide_alter_partition, ask)


def wish(controller: DecidingController, *isr: int, **changes: Any) -> AlterPartitionPartition:
    partition = controller.partition("t")
    brokers = controller.image.brokers
    members = tuple(BrokerState(broker_id=one, broker_epoch=brokers[one].broker_epoch) for one in isr)
    fields: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "new_isr_with_epochs": members,
        "leader_recovery_state": RECOVERED,
        "partition_epoch": partition.partition_epoch,
    }
    return AlterPartitionPartition(**{**fields, **changes})


def alter(
    controller: DecidingController, *isr: int, leader: int = 0, **changes: Any
) -> AlterPartitionPartitionResult:
    answer: AlterPartitionResponse = send(controller, wish(controller, *isr, **changes), leader=leader)
    assert answer.error_code is ErrorCode.NONE
    return answer.topics[0].partitions[0]


def change_broker(controller: DecidingController, broker_id: int, **changes: Any) -> None:
    controller.replay(replace(controller.image.brokers[broker_id], **changes))


def test_replicas_leave_and_come_back() -> None:
    controller = four_brokers()
    shrunk = alter(controller, 0, 1)
    assert (shrunk.error_code, shrunk.isr, shrunk.leader_id) == (ErrorCode.NONE, (0, 1), 0)
    assert (shrunk.leader_epoch, shrunk.partition_epoch) == (0, 1)
    assert alter(controller, 0, 1, 2).isr == controller.partition("t").isr == (0, 1, 2)


def test_below_the_minimum_those_that_leave_stay_eligible() -> None:
    controller = four_brokers()
    alter(controller, 0)
    assert controller.partition("t").eligible_leader_replicas == (1, 2)
    alter(controller, 0, 1)
    assert controller.partition("t").eligible_leader_replicas is None


def test_what_is_so_already_is_answered_without_a_record() -> None:
    controller = four_brokers()
    answer = alter(controller, 0, 1, 2)
    assert (answer.error_code, answer.partition_epoch) == (ErrorCode.NONE, 0)
    assert controller.records == []


@pytest.mark.parametrize(
    ("changes", "error_code"),
    [
        ({"partition_index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ({"new_isr_with_epochs": ()}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], error_code: ErrorCode) -> None:
    controller = four_brokers()
    assert alter(controller, 0, 1, **changes).error_code is error_code
    assert controller.records == []


def test_only_the_leader_may_ask_and_it_stays_in_sync_with_itself() -> None:
    controller = four_brokers()
    assert alter(controller, 0, 1, leader=1).error_code is ErrorCode.INVALID_REQUEST
    assert alter(controller, 1, 2).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("isr", [(0, 0), (0, 3)])
def test_members_are_different_replicas_of_the_partition(isr: tuple[int, ...]) -> None:
    assert alter(four_brokers(), *isr).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("changes", [{"fenced": True}, {"in_controlled_shutdown": True}])
def test_a_broker_that_is_not_up_cannot_join(changes: dict[str, Any]) -> None:
    controller = four_brokers()
    alter(controller, 0, 1)
    change_broker(controller, 2, **changes)
    assert alter(controller, 0, 1, 2).error_code is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_that_registered_anew_cannot_join_by_its_old_epoch() -> None:
    controller = four_brokers()
    alter(controller, 0, 1)
    stale = wish(controller, 0, 1, 2)
    change_broker(controller, 2, broker_epoch=500)
    (result,) = send(controller, stale).topics[0].partitions
    assert result.error_code is ErrorCode.INELIGIBLE_REPLICA


def test_an_epoch_of_minus_one_and_an_old_request_are_taken_without_a_look_at_epochs() -> None:
    controller = four_brokers()
    members = tuple(BrokerState(broker_id=one, broker_epoch=-1) for one in (0, 1))
    assert alter(controller, new_isr_with_epochs=members).isr == (0, 1)
    assert alter(controller, new_isr_with_epochs=(), new_isr=(0, 1, 2)).isr == (0, 1, 2)


def test_a_broker_of_an_older_epoch_may_change_nothing() -> None:
    controller = four_brokers()
    ask = AlterPartitionRequest(broker_id=0, broker_epoch=99, topics=())
    assert controller.ask(decide_alter_partition, ask).error_code is ErrorCode.STALE_BROKER_EPOCH
    unknown = AlterPartitionRequest(broker_id=9, broker_epoch=99, topics=())
    assert controller.ask(decide_alter_partition, unknown).error_code is ErrorCode.STALE_BROKER_EPOCH


def test_each_partition_stands_for_itself() -> None:
    controller = four_brokers()
    known = AlterPartitionTopic(
        topic_id=controller.topic("t").id,
        partitions=(wish(controller, 0, 1, partition_index=5), wish(controller, 0, 1)),
    )
    unknown = AlterPartitionTopic(topic_id=ZERO_UUID, partitions=(wish(controller, 0, 1),))
    ask = AlterPartitionRequest(broker_id=0, broker_epoch=100, topics=(unknown, known))
    answer = controller.ask(decide_alter_partition, ask)
    assert [one.error_code for topic in answer.topics for one in topic.partitions] == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert len(controller.records) == 1


def test_the_leader_of_an_unclean_election_says_that_it_has_recovered() -> None:
    controller = four_brokers()
    partition = replace(controller.partition("t"), isr=(0,), leader_recovery_state=RECOVERING)
    controller.replay(partition)
    assert alter(controller, 0, 1, leader_recovery_state=RECOVERING).error_code is ErrorCode.INVALID_REQUEST
    assert alter(controller, 0, leader_recovery_state=RECOVERING).error_code is ErrorCode.NONE
    answer = alter(controller, 0, 1)
    assert (answer.isr, answer.leader_recovery_state) == ((0, 1), RECOVERED)
    assert controller.partition("t").leader_recovery_state == RECOVERED


def test_a_change_that_completes_a_move_away_from_the_leader_elects_another() -> None:
    controller = four_brokers()
    move = ReassignablePartition(partition_index=0, replicas=(3, 1, 2))
    controller.ask(
        decide_alter_reassignments,
        AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="t", partitions=(move,)),)),
    )
    answer = alter(controller, 0, 1, 2, 3)
    assert (answer.error_code, answer.isr) == (ErrorCode.NEW_LEADER_ELECTED, ())
    partition = controller.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((3, 1, 2), (1, 2, 3), 3)
    assert (partition.adding_replicas, partition.removing_replicas) == ((), ())


def test_a_broker_that_is_stopping_may_not_come_back_by_a_late_request() -> None:
    controller = four_brokers()
    controller.have("u", (1, 2))
    stopping = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=101, current_metadata_offset=500, want_fence=False, want_shut_down=True
    )
    controller.ask(decide_heartbeat, stopping)
    assert controller.partition("t").isr == (0, 2)
    assert alter(controller, 0, 1, 2).error_code is ErrorCode.INELIGIBLE_REPLICA
