"""ElectLeaders: a user asks for the preferred leaders back, or for a leader at the price of records."""

from typing import Any, Final

from ottla.metadata.topics import NO_LEADER, Topic
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.quorum.controller.partitions.leadership import automatic_election, terms_of
from ottla.quorum.controller.partitions.partition_change import Election, Target, change_partition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.metadata_records.partitions import PartitionChangeRecord

_NODES_OWN: Final = "__ottla_journal"
"""Each node has a partition of its own of this topic. While the node is down, nobody else can lead it."""
_ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}

_MESSAGES: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader cannot lead now.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No live replica could lead.",
}


def refuse_elect_leaders(ask: ElectLeadersRequest, refusal: Refusal) -> ElectLeadersResponse:
    """Refuse all elections of a request."""
    results = tuple(
        ReplicaElectionResult(
            topic=one.topic,
            partition_results=tuple(_refused(number, refusal) for number in one.partitions),
        )
        for one in ask.topic_partitions or ()
    )
    return ElectLeadersResponse(error_code=refusal.error_code, replica_election_results=results)


@decides(ElectLeadersRequest, refuse=refuse_elect_leaders)
def decide_elect_leaders(view: ControllerView, ask: ElectLeadersRequest) -> Decision[ElectLeadersResponse]:
    """Elect leaders. If all partitions are asked for, the answer has only those with something to do.

    Deviation: the journal is not one of them, which Kafka does not have. Kafka's tool would report an error
    for every node that is down.
    """
    election = _ELECTIONS.get(ask.election_type)
    if election is None:
        unknown = Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {ask.election_type}")
        return Decision(refuse_elect_leaders(ask, unknown))
    records: list[Any] = []
    results = []
    try:
        if ask.topic_partitions is None:
            for topic in view.image.topics:
                if topic.name == _NODES_OWN:
                    continue
                partitions = [
                    result
                    for number in topic.partitions
                    if (result := _elect(view, topic.name, number, election, records)).error_code
                    != ErrorCode.ELECTION_NOT_NEEDED
                ]
                results.append(ReplicaElectionResult(topic=topic.name, partition_results=tuple(partitions)))
        else:
            for one in ask.topic_partitions:
                elected = [_elect(view, one.topic, number, election, records) for number in one.partitions]
                results.append(ReplicaElectionResult(topic=one.topic, partition_results=tuple(elected)))
        check_record_count(len(records))
    except Refusal as refusal:
        return Decision(refuse_elect_leaders(ask, refusal))
    return Decision(ElectLeadersResponse(replica_election_results=tuple(results)), records)


def _refused(number: int, refusal: Refusal) -> PartitionResult:
    return PartitionResult(partition_id=number, error_code=refusal.error_code, error_message=refusal.message)


def _elect(
    view: ControllerView, topic_name: str, number: int, election: Election, records: list[Any]
) -> PartitionResult:
    try:
        topic = view.image.topics.find(topic_name)
        if topic is None:
            raise Refusal(  # noqa: TRY301 - the one place where a missing topic shows
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_name}"
            )
        records.append(elect_leader(view, topic, number, election))
    except Refusal as refusal:
        return _refused(number, refusal)
    return PartitionResult(partition_id=number, error_message=None)


def elect_leader(
    view: ControllerView, topic: Topic, number: int, election: Election
) -> PartitionChangeRecord:
    """Return the change that gives a partition the leader asked for, or refuse."""
    partition = topic.partitions.get(number)
    if partition is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic.name}-{number}")
    is_preferred = election is Election.PREFERRED
    if partition.leader == partition.replicas[0] if is_preferred else partition.leader != NO_LEADER:
        raise _refuse(ErrorCode.ELECTION_NOT_NEEDED)
    record = change_partition(partition, Target(), terms_of(view, topic, partition, election))
    if record is None:
        raise _refuse(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if is_preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    return record


def elect_preferred_leaders(view: ControllerView, count_max: int) -> list[PartitionChangeRecord]:
    """Return the changes that give partitions their preferred leaders, as far as those can lead."""
    records: list[PartitionChangeRecord] = []
    for topic in view.image.topics:
        for partition in topic.partitions.values():
            if partition.leader == partition.replicas[0]:
                continue
            if len(records) >= count_max:
                return records
            terms = terms_of(view, topic, partition, Election.PREFERRED)
            record = change_partition(partition, Target(), terms)
            if record is not None:
                records.append(record)
    return records


def elect_unclean_leaders(view: ControllerView, count_max: int) -> list[PartitionChangeRecord]:
    """Return the changes that elect leaders where nobody leads and the topic prefers that to its records."""
    records: list[PartitionChangeRecord] = []
    for topic in view.image.topics:
        leaderless = [one for one in topic.partitions.values() if one.leader == NO_LEADER]
        if not leaderless or not view.allows_unclean_election(topic.name):
            continue
        for partition in leaderless:
            if len(records) >= count_max:
                return records
            election = automatic_election(view, topic.name, partition)
            record = change_partition(partition, Target(), terms_of(view, topic, partition, election))
            if record is not None:
                records.append(record)
    return records


def _refuse(error_code: ErrorCode) -> Refusal:
    return Refusal(error_code, _MESSAGES[error_code])
