"""Replicas: which brokers hold a partition, and which of them leads it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.client.admin.results import Results
from ottla.client.admin.routes import Routes, by_topic, outcome_of
from ottla.client.errors import raise_for
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


class ElectionType(IntEnum):
    """Who may win: the first of the replicas, or anyone alive, even if records are lost by it."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move of a partition that is under way."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class Replicas:
    """The replicas of a cluster's partitions."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def reassign(
        self, targets: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Results[TopicPartition, None]:
        """Move partitions to brokers; None calls a move off. The moves go on after this returns."""
        topics = tuple(
            ReassignableTopic(
                name=topic,
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=number, replicas=_brokers(targets[TopicPartition(topic, number)])
                    )
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(targets).items()
        )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._routes.request_timeout_ms, topics=topics
        )
        answer = await self._routes.ask_controller(request, lambda found: (found.error_code,))
        raise_for(answer.error_code, "cannot move partitions", answer.error_message)
        return Results(
            {
                TopicPartition(topic.name, item.partition_index): outcome_of(
                    item.error_code,
                    f"cannot move {topic.name}-{item.partition_index}",
                    item.error_message,
                    None,
                )
                for topic in answer.responses
                for item in topic.partitions
            }
        )

    async def reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the moves that are under way, of all partitions or of some."""
        topics = None
        if partitions is not None:
            topics = tuple(
                ListPartitionReassignmentsTopics(name=name, partition_indexes=tuple(numbers))
                for name, numbers in by_topic(partitions).items()
            )
        request = ListPartitionReassignmentsRequest(timeout_ms=self._routes.request_timeout_ms, topics=topics)
        answer = await self._routes.ask_controller(
            request, lambda found: (found.error_code,), repeatable=True
        )
        raise_for(answer.error_code, "cannot list moves", answer.error_message)
        return {
            TopicPartition(topic.name, item.partition_index): Reassignment(
                item.replicas, item.adding_replicas, item.removing_replicas
            )
            for topic in answer.topics
            for item in topic.partitions
        }

    async def elect(
        self,
        partitions: Collection[TopicPartition] | None = None,
        election: ElectionType = ElectionType.PREFERRED,
    ) -> Results[TopicPartition, bool]:
        """Elect leaders of some partitions, or of all. False: the right one leads already."""
        topics = None
        if partitions is not None:
            topics = tuple(
                TopicPartitions(topic=name, partitions=tuple(numbers))
                for name, numbers in by_topic(partitions).items()
            )
        request = ElectLeadersRequest(
            election_type=election, topic_partitions=topics, timeout_ms=self._routes.request_timeout_ms
        )
        answer = await self._routes.ask_controller(
            request, lambda found: (found.error_code,), repeatable=True
        )
        raise_for(answer.error_code, "cannot elect leaders")
        return Results(
            {
                TopicPartition(topic.topic, item.partition_id): False
                if item.error_code is ErrorCode.ELECTION_NOT_NEEDED
                else outcome_of(
                    item.error_code,
                    f"cannot elect a leader of {topic.topic}-{item.partition_id}",
                    item.error_message,
                    True,
                )
                for topic in answer.replica_election_results
                for item in topic.partition_results
            }
        )


def _brokers(target: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if target is None else tuple(target)
