"""AlterPartition: the leader of a partition says which replicas are in sync.

The leader knows how far each replica has come. The controller knows which brokers are up, so it has the last
word: a broker that is fenced, about to stop, or registered again since the leader last heard from it stays
out (KIP-841, KIP-903). A change may complete a reassignment, and that may move the leadership away from the
broker that asked.
"""

from collections.abc import Sequence
from typing import Any

from ottla.metadata.topics import NO_LEADER_CHANGE, RECOVERED, RECOVERING, Topic, merge
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal
from ottla.quorum.controller.partitions.leadership import automatic_election, terms_of
from ottla.quorum.controller.partitions.partition_change import Target, change_partition
from ottla.quorum.controller.partitions.replicas import Brokers, is_active
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    AlterPartitionTopicResult,
    BrokerState,
)
from ottla.wire.metadata_records.partitions import PartitionRecord

_ANY_EPOCH = -1


def refuse_alter_partition(_ask: AlterPartitionRequest, refusal: Refusal) -> AlterPartitionResponse:
    """Refuse all changes of a request."""
    return AlterPartitionResponse(error_code=refusal.error_code, topics=())


@decides(AlterPartitionRequest, refuse=refuse_alter_partition)
def decide_alter_partition(
    view: ControllerView, ask: AlterPartitionRequest
) -> Decision[AlterPartitionResponse]:
    """Change in-sync replicas. Each partition is decided on its own."""
    broker = view.image.brokers.get(ask.broker_id)
    if broker is None or broker.broker_epoch != ask.broker_epoch:
        return Decision(refuse_alter_partition(ask, Refusal(ErrorCode.STALE_BROKER_EPOCH)))
    records: list[Any] = []
    topics = tuple(_alter_topic(view, ask.broker_id, topic, records) for topic in ask.topics)
    return Decision(AlterPartitionResponse(topics=topics), records)


def _alter_topic(
    view: ControllerView, leader: int, ask: AlterPartitionTopic, records: list[Any]
) -> AlterPartitionTopicResult:
    topic = view.image.topics.find_by_id(ask.topic_id)
    results = []
    for one in ask.partitions:
        try:
            results.append(_alter(view, leader, topic, one, records))
        except Refusal as refusal:
            results.append(_refused(one, refusal.error_code))
    return AlterPartitionTopicResult(topic_id=ask.topic_id, partitions=tuple(results))


def _refused(one: AlterPartitionPartition, error_code: ErrorCode) -> AlterPartitionPartitionResult:
    return AlterPartitionPartitionResult(
        partition_index=one.partition_index,
        error_code=error_code,
        leader_id=0,
        leader_epoch=0,
        isr=(),
        partition_epoch=0,
    )


def _alter(
    view: ControllerView,
    leader: int,
    topic: Topic | None,
    ask: AlterPartitionPartition,
    records: list[Any],
) -> AlterPartitionPartitionResult:
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(ask.partition_index)
    if partition is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    members = _members(ask)
    isr = tuple(member.broker_id for member in members)
    _check_epochs(leader, partition, ask)
    _check_isr(partition, isr, ask.leader_recovery_state)
    _check_members(view.image.brokers, members)
    target = Target(isr=isr, recovery_state=ask.leader_recovery_state)
    terms = terms_of(view, topic, partition, automatic_election(view, topic.name, partition))
    record = change_partition(partition, target, terms)
    if record is not None:
        records.append(record)
        partition = merge(partition, record)
        if record.leader not in (leader, NO_LEADER_CHANGE):
            # An error, and done all the same: the asker has to learn from the log who leads now.
            raise Refusal(ErrorCode.NEW_LEADER_ELECTED)
    return AlterPartitionPartitionResult(
        partition_index=ask.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _members(ask: AlterPartitionPartition) -> Sequence[BrokerState]:
    """Return the wanted in-sync replicas. Before version 3 they come without epochs."""
    return ask.new_isr_with_epochs or [
        BrokerState(broker_id=broker_id, broker_epoch=_ANY_EPOCH) for broker_id in ask.new_isr
    ]


def _check_epochs(leader: int, partition: PartitionRecord, ask: AlterPartitionPartition) -> None:
    if ask.leader_epoch > partition.leader_epoch or ask.partition_epoch > partition.partition_epoch:
        # The asker has seen more of the log than we have, so another node must be the active controller.
        raise Refusal(ErrorCode.NOT_CONTROLLER)
    if ask.leader_epoch < partition.leader_epoch:
        raise Refusal(ErrorCode.FENCED_LEADER_EPOCH)
    if leader != partition.leader:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if ask.partition_epoch < partition.partition_epoch:
        raise Refusal(ErrorCode.INVALID_UPDATE_VERSION)


def _check_isr(partition: PartitionRecord, isr: tuple[int, ...], recovery_state: int) -> None:
    is_set_of_replicas = len(set(isr)) == len(isr) and set(isr) <= set(partition.replicas)
    if not is_set_of_replicas or partition.leader not in isr:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if recovery_state not in (RECOVERED, RECOVERING):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    # What an unclean election left behind is made good by the leader alone, and never comes back by itself.
    may_recover = partition.leader_recovery_state == RECOVERING and len(isr) == 1
    if recovery_state == RECOVERING and not may_recover:
        raise Refusal(ErrorCode.INVALID_REQUEST)


def _check_members(brokers: Brokers, members: Sequence[BrokerState]) -> None:
    for member in members:
        if not is_active(brokers, member.broker_id):
            raise Refusal(ErrorCode.INELIGIBLE_REPLICA)
        if member.broker_epoch not in (_ANY_EPOCH, brokers[member.broker_id].broker_epoch):
            raise Refusal(ErrorCode.INELIGIBLE_REPLICA)
