"""ShareGroupDescribe: a share group with its members and what they have."""

from typing import Final

from ottla.coordination.group.environment import Topics
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.share.group import ShareGroup
from ottla.coordination.group.share.member import Member
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_group_describe import Assignment, DescribedGroup, TopicPartitions
from ottla.wire.messages.share_group_describe import Member as DescribedMember

_ASSIGNOR: Final = "simple"


def describe_share_group(group_id: str, group: Group | None, topics: Topics) -> DescribedGroup:
    """Describe a group. One of another kind is, to this request, a group that does not exist."""
    if not isinstance(group, ShareGroup):
        why = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a share group."
        return refused_share_description(group_id, ErrorCode.GROUP_ID_NOT_FOUND, why)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=_ASSIGNOR,
        members=tuple(_member(member, topics) for member in reversed(group.members.values())),
    )


def refused_share_description(
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


def _member(member: Member, topics: Topics) -> DescribedMember:
    shown = []
    for topic_id in sorted(member.assigned):
        facts = topics.find_by_id(topic_id)
        if facts is not None:
            numbers = tuple(sorted(member.assigned[topic_id]))
            shown.append(TopicPartitions(topic_id=topic_id, topic_name=facts.name, partitions=numbers))
    return DescribedMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        assignment=Assignment(topic_partitions=tuple(shown)),
    )
