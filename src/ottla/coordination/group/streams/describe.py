"""StreamsGroupDescribe: a streams group with its topology, its members, their tasks and their targets."""

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.coordination.group.kinds import Group
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.group.streams.internal_topics import ConfiguredTopology, InternalTopic
from ottla.coordination.group.streams.member import Member
from ottla.coordination.group.streams.topology import Topology
from ottla.wire.coordinator_records.streams_group import TopicInfo as RecordedTopic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Subtopology,
    TaskIds,
    TopicInfo,
)
from ottla.wire.messages.streams_group_describe import Member as DescribedMember
from ottla.wire.messages.streams_group_describe import Topology as DescribedTopology


def describe_streams_group(group_id: str, group: Group | None) -> DescribedGroup:
    """Describe a group. One of another kind is, to this request, a group that does not exist."""
    if not isinstance(group, StreamsGroup):
        why = "not found" if group is None else "is not a streams group"
        return refused_streams_description(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        # The newest first, as groups are listed.
        members=tuple(_member(member, group) for member in reversed(group.members.values())),
    )


def refused_streams_description(
    group_id: str, error_code: ErrorCode, message: str | None = None
) -> DescribedGroup:
    """Return what is said of a group that cannot be described."""
    return DescribedGroup(
        error_code=error_code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=(),
    )


def _topology(group: StreamsGroup) -> DescribedTopology | None:
    """Describe the topology: as it was sent, or with the numbers of partitions once they are known."""
    if group.configured is not None and group.configured.is_ready:
        return _configured(group.configured)
    return None if group.topology is None else _as_sent(group.topology)


def _configured(topology: ConfiguredTopology) -> DescribedTopology:
    described = [
        Subtopology(
            subtopology_id=one,
            source_topics=tuple(sorted(subtopology.source_topics)),
            repartition_sink_topics=tuple(sorted(subtopology.repartition_sink_topics)),
            state_changelog_topics=_internal(subtopology.state_changelog_topics.values()),
            repartition_source_topics=_internal(subtopology.repartition_source_topics.values()),
        )
        for one, subtopology in (topology.subtopologies or {}).items()
    ]
    return DescribedTopology(epoch=topology.epoch, subtopologies=tuple(described))


def _internal(topics: Iterable[InternalTopic]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=tuple(KeyValue(key=key, value=value) for key, value in topic.configs),
        )
        for topic in sorted(topics)
    )


def _as_sent(topology: Topology) -> DescribedTopology:
    described = [
        Subtopology(
            subtopology_id=one,
            source_topics=tuple(sorted(subtopology.source_topics)),
            repartition_sink_topics=tuple(sorted(subtopology.repartition_sink_topics)),
            state_changelog_topics=_recorded(subtopology.state_changelog_topics),
            repartition_source_topics=_recorded(subtopology.repartition_source_topics),
        )
        for one, subtopology in sorted(topology.subtopologies.items())
    ]
    return DescribedTopology(epoch=topology.epoch, subtopologies=tuple(described))


def _recorded(topics: Iterable[RecordedTopic]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=tuple(KeyValue(key=one.key, value=one.value) for one in topic.topic_configs),
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    )


def _member(member: Member, group: StreamsGroup) -> DescribedMember:
    endpoint, held = member.user_endpoint, member.assignment.held
    return DescribedMember(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=tuple(
            KeyValue(key=key, value=value) for key, value in sorted(member.client_tags.items())
        ),
        task_offsets=(),
        task_end_offsets=(),
        assignment=_assignment(*held),
        target_assignment=_assignment(*group.find_target(member.member_id)),
        is_classic=False,
    )


def _assignment(
    active: Mapping[str, Any], standby: Mapping[str, Any], warmup: Mapping[str, Any]
) -> Assignment:
    return Assignment(
        active_tasks=_task_ids(active), standby_tasks=_task_ids(standby), warmup_tasks=_task_ids(warmup)
    )


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    return tuple(TaskIds(subtopology_id=one, partitions=tuple(sorted(tasks[one]))) for one in sorted(tasks))
