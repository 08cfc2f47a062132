"""Streams groups (KIP-1071), described as groups of other kinds are: by the partitions that members read."""

from collections.abc import Iterable

from ottla.client.admin.descriptions import GroupDescription, MemberDescription
from ottla.client.admin.routes import outcome_of
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.messages.streams_group_describe import DescribedGroup, Member, TaskIds

_Sources = dict[str, tuple[str, ...]]
"""The topics that a subtopology reads."""


def describe_streams_group(group: DescribedGroup, node_id: int) -> GroupDescription | ClientError:
    """Return what a coordinator says about a streams group."""
    sources = _sources(group)
    description = GroupDescription(
        group_id=group.group_id,
        type="streams",
        state=group.group_state,
        protocol_type="streams",
        assignor="sticky",
        coordinator=node_id,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(_member(member, sources) for member in group.members),
    )
    what = f"cannot describe streams group {group.group_id!r}"
    return outcome_of(group.error_code, what, group.error_message, description)


def _sources(group: DescribedGroup) -> _Sources:
    subtopologies = () if group.topology is None else group.topology.subtopologies or ()
    return {
        one.subtopology_id: (*one.source_topics, *(topic.name for topic in one.repartition_source_topics))
        for one in subtopologies
    }


def _member(member: Member, sources: _Sources) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        rack_id=member.rack_id,
        epoch=member.member_epoch,
        subscribed_topics=tuple(sorted({topic for topics in sources.values() for topic in topics})),
        subscribed_regex=None,
        assignment=_partitions(member.assignment.active_tasks, sources),
        target_assignment=_partitions(member.target_assignment.active_tasks, sources),
    )


def _partitions(tasks: Iterable[TaskIds], sources: _Sources) -> tuple[TopicPartition, ...]:
    """Return the partitions that active tasks read. Standby tasks read changelogs alone."""
    return tuple(
        TopicPartition(topic, partition)
        for task in tasks
        for topic in sources.get(task.subtopology_id, ())
        for partition in task.partitions
    )
