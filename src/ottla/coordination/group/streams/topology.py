"""The topology of a streams group: what its members run, as the first of them has told.

A subtopology reads source topics and repartition topics, and keeps its state in changelog topics. The group's
topology is set once. A member with an older epoch may join, and learns that it is behind; a newer epoch is
refused, because Apache Kafka 4.3.1 cannot change a topology either.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ottla.coordination.group.refusal import Refused
from ottla.wire.coordinator_records.streams_group import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import streams_group_heartbeat as heartbeat


@dataclass(frozen=True)
class Topology:
    """A topology. What is derived from its subtopologies is computed once."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]
    by_source_topic: Mapping[str, str] = field(init=False, compare=False)
    """The subtopology that reads a topic, by the topic's name."""
    required_topics: frozenset[str] = field(init=False, compare=False)
    """All topics that the group reads or keeps its state in."""

    def __post_init__(self) -> None:
        sources = {
            name: subtopology.subtopology_id
            for subtopology in self.subtopologies.values()
            for name in source_names(subtopology)
        }
        changelogs = {
            topic.name
            for subtopology in self.subtopologies.values()
            for topic in subtopology.state_changelog_topics
        }
        object.__setattr__(self, "by_source_topic", sources)
        object.__setattr__(self, "required_topics", frozenset(sources) | changelogs)


def source_names(subtopology: Subtopology) -> Iterator[str]:
    """Give the topics that a subtopology reads."""
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


def topology_of_record(value: StreamsGroupTopologyValue) -> Topology:
    """Return the topology that a record describes."""
    return Topology(value.epoch, {one.subtopology_id: one for one in value.subtopologies})


def record_of_request(topology: heartbeat.Topology) -> StreamsGroupTopologyValue:
    """Return the record of a topology that a member sends. Raises `Refused` if it is none.

    Deviation: Kafka answers UNKNOWN_SERVER_ERROR to what is refused here.
    """
    if topology.epoch < 0:
        raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, "The topology epoch must not be negative.")
    ids = [subtopology.subtopology_id for subtopology in topology.subtopologies]
    if len(set(ids)) < len(ids):
        raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, "The topology has the same subtopology twice.")
    for subtopology in topology.subtopologies:
        _check_positions(subtopology)
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=tuple(_subtopology(one) for one in topology.subtopologies),
    )


def all_topic_names(topology: heartbeat.Topology) -> list[str]:
    """Return the names of all topics that a member's topology speaks of, each once."""
    names: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        names.update(dict.fromkeys(subtopology.source_topics))
        names.update(dict.fromkeys(subtopology.repartition_sink_topics))
        names.update(dict.fromkeys(topic.name for topic in subtopology.repartition_source_topics))
        names.update(dict.fromkeys(topic.name for topic in subtopology.state_changelog_topics))
    return list(names)


def _check_positions(subtopology: heartbeat.Subtopology) -> None:
    for group in subtopology.copartition_groups:
        for positions, topics in (
            (group.source_topics, subtopology.source_topics),
            (group.repartition_source_topics, subtopology.repartition_source_topics),
        ):
            if any(not 0 <= position < len(topics) for position in positions):
                message = (
                    f"A copartition group of subtopology {subtopology.subtopology_id} "
                    "names a topic that the subtopology does not have."
                )
                raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _subtopology(told: heartbeat.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=told.subtopology_id,
        source_topics=told.source_topics,
        source_topic_regex=told.source_topic_regex,
        state_changelog_topics=tuple(map(_topic, told.state_changelog_topics)),
        repartition_sink_topics=told.repartition_sink_topics,
        repartition_source_topics=tuple(map(_topic, told.repartition_source_topics)),
        copartition_groups=tuple(
            CopartitionGroup(
                source_topics=group.source_topics,
                source_topic_regex=group.source_topic_regex,
                repartition_source_topics=group.repartition_source_topics,
            )
            for group in told.copartition_groups
        ),
    )


def _topic(told: heartbeat.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=told.name,
        partitions=told.partitions,
        replication_factor=told.replication_factor,
        topic_configs=tuple(TopicConfig(key=one.key, value=one.value) for one in told.topic_configs),
    )
