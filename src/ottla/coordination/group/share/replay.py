"""Applying the records of share groups, while serving and while loading alike.

As with consumer groups, nothing here insists on an order: a compaction may have left only some of the records
of one decision.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.coordination.group.kinds import Group, Replay
from ottla.coordination.group.share.group import NO_PARTITIONS, ShareGroup
from ottla.coordination.group.share.member import LEFT, Member
from ottla.coordination.group.share.state_topics import NamedPartitions, StateTopics, TopicStates
from ottla.wire.coordinator_records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitionsInfo,
)

_DELETED_EPOCH: Final = -1
_Apply = Callable[[ShareGroup, Any, Any], None]


def share_replays(groups: dict[str, Group]) -> dict[type[Any], Replay]:
    """Return how the records of share groups are applied to the groups of a shard, by type of key."""

    def replay_with(apply: _Apply) -> Replay:
        return lambda key, value, _producer: _replay(groups, apply, key, value)

    return {key_type: replay_with(apply) for key_type, apply in _APPLY.items()}


def _replay(groups: dict[str, Group], apply: _Apply, key: Any, value: Any) -> None:
    group = groups.get(key.group_id)
    if not isinstance(group, ShareGroup):
        if value is None:
            return
        group = groups[key.group_id] = ShareGroup(key.group_id)
    apply(group, key, value)
    if value is None and isinstance(key, ShareGroupMetadataKey):
        del groups[key.group_id]


def _apply_epoch(
    group: ShareGroup, _key: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None
) -> None:
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _apply_member(
    group: ShareGroup, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove(key.member_id)
    else:
        group.put(_member(group, key.member_id).with_metadata(value))


def _apply_target_epoch(
    group: ShareGroup,
    _key: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = _DELETED_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _apply_target(
    group: ShareGroup,
    key: ShareGroupTargetAssignmentMemberKey,
    value: ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    target = None
    if value is not None:
        target = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
    group.put_target(key.member_id, target)


def _apply_current(
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.put(_member(group, key.member_id).with_current(value))
    elif key.member_id in group.members:
        group.put(group.members[key.member_id].with_assignment(LEFT, LEFT, NO_PARTITIONS))


def _apply_state_topics(
    group: ShareGroup,
    _key: ShareGroupStatePartitionMetadataKey,
    value: ShareGroupStatePartitionMetadataValue | None,
) -> None:
    state = None
    if value is not None:
        state = StateTopics(
            _states(value.initializing_topics),
            _states(value.initialized_topics),
            frozenset(topic.topic_id for topic in value.deleting_topics),
        )
    group.put_state_topics(state)


def _states(topics: tuple[TopicPartitionsInfo, ...]) -> TopicStates:
    return {
        topic.topic_id: NamedPartitions(topic.topic_name, frozenset(topic.partitions)) for topic in topics
    }


def _member(group: ShareGroup, member_id: str) -> Member:
    return group.members.get(member_id) or Member(member_id)


_APPLY: Final[dict[type[Any], _Apply]] = {
    ShareGroupMetadataKey: _apply_epoch,
    ShareGroupMemberMetadataKey: _apply_member,
    ShareGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ShareGroupTargetAssignmentMemberKey: _apply_target,
    ShareGroupCurrentMemberAssignmentKey: _apply_current,
    ShareGroupStatePartitionMetadataKey: _apply_state_topics,
}
