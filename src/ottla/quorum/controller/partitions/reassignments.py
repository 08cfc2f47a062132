"""Moving partitions to other brokers (KIP-455): begun, cancelled, listed.

While a partition moves, its replicas are the wanted ones followed by those to be removed, and two lists say
which are new and which are to go. The move completes by itself, when the new replicas are in sync: see
`partition_change`.
"""

from typing import Any

from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import Topic
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.quorum.controller.partitions.leadership import automatic_election, terms_of
from ottla.quorum.controller.partitions.partition_change import Target, change_partition
from ottla.quorum.controller.partitions.placement import Assignment, check_manual_assignment
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ottla.wire.metadata_records.partitions import PartitionChangeRecord, PartitionRecord


def refuse_alter_reassignments(
    ask: AlterPartitionReassignmentsRequest, refusal: Refusal
) -> AlterPartitionReassignmentsResponse:
    """Refuse all moves of a request."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=ask.allow_replication_factor_change,
        error_code=refusal.error_code,
        error_message=refusal.message,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name, partitions=tuple(_refused(one, refusal) for one in topic.partitions)
            )
            for topic in ask.topics
        ),
    )


@decides(AlterPartitionReassignmentsRequest, refuse=refuse_alter_reassignments)
def decide_alter_reassignments(
    view: ControllerView, ask: AlterPartitionReassignmentsRequest
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Begin and cancel moves. Each partition is decided on its own."""
    records: list[Any] = []
    responses = []
    for topic in ask.topics:
        found = view.image.topics.find(topic.name)
        partitions = [
            _alter(view, found, topic.name, one, ask.allow_replication_factor_change, records)
            for one in topic.partitions
        ]
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(partitions)))
    reply = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=ask.allow_replication_factor_change,
        error_message=None,
        responses=tuple(responses),
    )
    return Decision(reply, records)


def _alter(
    view: ControllerView,
    topic: Topic | None,
    name: str,
    one: ReassignablePartition,
    may_change_factor: bool,
    records: list[Any],
) -> ReassignablePartitionResponse:
    try:
        partition = None if topic is None else topic.partitions.get(one.partition_index)
        if topic is None or partition is None:
            missing = f"a topic named {name}" if topic is None else f"partition {name}:{one.partition_index}"
            raise Refusal(  # noqa: TRY301 - the one place where a missing partition shows
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find {missing}."
            )
        if one.replicas is None:
            record = _cancel(view, topic, partition)
        else:
            record = _begin(view, topic, partition, one.replicas, may_change_factor)
        check_record_count(len(records) + 1)
    except Refusal as refusal:
        return _refused(one, refusal)
    if record is not None:
        records.append(record)
    return ReassignablePartitionResponse(partition_index=one.partition_index, error_message=None)


def _refused(one: ReassignablePartition, refusal: Refusal) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=one.partition_index, error_code=refusal.error_code, error_message=refusal.message
    )


def _begin(
    view: ControllerView,
    topic: Topic,
    partition: PartitionRecord,
    wanted: Assignment,
    may_change_factor: bool,
) -> PartitionChangeRecord | None:
    check_manual_assignment(view, wanted, None)
    present = partition.replicas
    if not may_change_factor:
        # A move under way counts as done: its end is what would be changed.
        factor = len(set(present) - set(partition.removing_replicas))
        if factor != len(wanted):
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {factor} to {len(wanted)}",
            )
    removing = tuple(sorted(set(present) - set(wanted)))
    adding = tuple(sorted(set(wanted) - set(present)))
    target = Target(
        replicas=(*wanted, *removing),
        removing=removing or None,
        adding=adding or None,
    )
    return change_partition(partition, target, terms_of(view, topic, partition))


def _cancel(view: ControllerView, topic: Topic, partition: PartitionRecord) -> PartitionChangeRecord | None:
    adding = partition.adding_replicas
    if not adding and not partition.removing_replicas:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    replicas = tuple(one for one in partition.replicas if one not in adding)
    isr = tuple(one for one in partition.isr if one not in adding)
    if not replicas:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The partition had no replicas before its move.")
    if not isr:
        if not view.allows_unclean_election(topic.name):
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The move cannot be cancelled: none of the old replicas is in sync, and the topic does not "
                "allow unclean elections.",
            )
        isr = replicas[:1]
    target = Target(isr=isr, replicas=replicas, removing=(), adding=())
    terms = terms_of(view, topic, partition, automatic_election(view, topic.name, partition))
    return change_partition(partition, target, terms)


def list_reassignments(
    image: MetadataImage, ask: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the moves under way, of all partitions or of those asked about."""
    if ask.topics is None:
        wanted = [(topic, tuple(topic.partitions)) for topic in image.topics]
    else:
        wanted = [
            (topic, one.partition_indexes)
            for one in ask.topics
            if (topic := image.topics.find(one.name)) is not None
        ]
    topics = [_ongoing(topic, numbers) for topic, numbers in wanted]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=tuple(topic for topic in topics if topic.partitions)
    )


def _ongoing(topic: Topic, numbers: tuple[int, ...]) -> OngoingTopicReassignment:
    moving = []
    for number in numbers:
        partition = topic.partitions.get(number)
        if partition is not None and (partition.adding_replicas or partition.removing_replicas):
            moving.append(
                OngoingPartitionReassignment(
                    partition_index=number,
                    replicas=partition.replicas,
                    adding_replicas=partition.adding_replicas,
                    removing_replicas=partition.removing_replicas,
                )
            )
    return OngoingTopicReassignment(name=topic.name, partitions=tuple(moving))
