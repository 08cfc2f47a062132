"""Which partitions the applications of a streams group serve, so that a query finds the right one.

A member may tell an endpoint of its application. The answers to heartbeats then say which partitions are
behind which endpoint, whenever that has changed.
"""

from collections.abc import Iterable, Mapping

from ottla.coordination.group.environment import Topics
from ottla.coordination.group.streams.internal_topics import ConfiguredSubtopology
from ottla.coordination.group.streams.member import Member
from ottla.wire.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition

Subtopologies = Mapping[str, ConfiguredSubtopology]


def partitions_by_endpoint(
    members: Iterable[Member], subtopologies: Subtopologies | None, topics: Topics
) -> tuple[EndpointToPartitions, ...]:
    """Return the partitions of all members that have told an endpoint.

    Deviation: while source topics are missing there are none. Kafka answers UNKNOWN_SERVER_ERROR.
    """
    if subtopologies is None:
        return ()
    return tuple(
        EndpointToPartitions(
            user_endpoint=Endpoint(host=member.user_endpoint.host, port=member.user_endpoint.port),
            active_partitions=_partitions(member.assignment.held.active, subtopologies, topics),
            standby_partitions=_partitions(member.assignment.held.standby, subtopologies, topics),
        )
        for member in members
        if member.user_endpoint is not None
    )


def _partitions(
    tasks: Mapping[str, Iterable[int]], subtopologies: Subtopologies, topics: Topics
) -> tuple[TopicPartition, ...]:
    found = []
    for one in sorted(tasks):
        subtopology = subtopologies.get(one)
        if subtopology is None:
            continue
        numbers = sorted(tasks[one])
        for name in sorted({*subtopology.source_topics, *subtopology.repartition_source_topics}):
            facts = topics.find_by_name(name)
            if facts is not None:
                # A topic may have fewer partitions than its subtopology has tasks.
                served = tuple(numbers[: facts.partition_count])
                found.append(TopicPartition(topic=name, partitions=served))
    return tuple(found)
