"""ConsumerGroupDescribe: a consumer group with its members, what they have and what they should have."""

from collections.abc import Iterable, Mapping

from ottla.coordination.group.consumer.group import NO_PARTITIONS, ConsumerGroup
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.environment import Environment, Topics
from ottla.coordination.group.kinds import Group
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import Assignment, DescribedGroup, TopicPartitions
from ottla.wire.messages.consumer_group_describe import Member as DescribedMember

_CLASSIC = 0
_CONSUMER = 1


def describe_consumer_group(group_id: str, group: Group | None, env: Environment) -> DescribedGroup:
    """Describe a group. One of another kind is, to this request, a group that does not exist."""
    if not isinstance(group, ConsumerGroup):
        why = (
            f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        )
        return refused_consumer_description(group_id, ErrorCode.GROUP_ID_NOT_FOUND, why)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or env.settings.consumer_assignors[0],
        # The newest first, as groups are listed.
        members=tuple(_member(member, group, env.topics) for member in reversed(group.members.values())),
    )


def refused_consumer_description(
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
        assignor_name="",
        members=(),
    )


def _member(member: Member, group: ConsumerGroup, topics: Topics) -> DescribedMember:
    has = member.assignment
    # What it has yet to give up it still has.
    holds = {topic: set(numbers) for topic, numbers in has.assigned.items()}
    for topic, numbers in has.pending_revocation.items():
        holds.setdefault(topic, set()).update(numbers)
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(holds, topics),
        target_assignment=_assignment(group.targets.get(member.member_id, NO_PARTITIONS), topics),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics) -> Assignment:
    """Name the topics. Those that are gone are left out."""
    shown = []
    for topic_id in sorted(partitions):
        facts = topics.find_by_id(topic_id)
        if facts is not None:
            numbers = tuple(sorted(partitions[topic_id]))
            shown.append(TopicPartitions(topic_id=topic_id, topic_name=facts.name, partitions=numbers))
    return Assignment(topic_partitions=tuple(shown))
