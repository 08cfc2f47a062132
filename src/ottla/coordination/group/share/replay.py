"""Applying the records of share groups: what `modern/replay.py` does not already do for all kinds."""

from typing import Any, Final

from ottla.coordination.group.kinds import Group, Replay
from ottla.coordination.group.modern.replay import (
    Apply,
    apply_current,
    apply_epoch,
    apply_member,
    apply_target_epoch,
    modern_replays,
)
from ottla.coordination.group.share.group import ShareGroup
from ottla.coordination.group.share.state_topics import NamedPartitions, StateTopics, TopicStates
from ottla.wire.coordinator_records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    TopicPartitionsInfo,
)


def share_replays(groups: dict[str, Group]) -> dict[type[Any], Replay]:
    """Return how the records of share groups are applied to the groups of a shard, by type of key."""
    return modern_replays(groups, ShareGroup, ShareGroupMetadataKey, _APPLY)


def _apply_target(
    group: ShareGroup,
    key: ShareGroupTargetAssignmentMemberKey,
    value: ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    target = None
    if value is not None:
        target = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
    group.put_target(key.member_id, target)


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


_APPLY: Final[dict[type[Any], Apply[ShareGroup]]] = {
    ShareGroupMetadataKey: apply_epoch,
    ShareGroupMemberMetadataKey: apply_member,
    ShareGroupTargetAssignmentMetadataKey: apply_target_epoch,
    ShareGroupTargetAssignmentMemberKey: _apply_target,
    ShareGroupCurrentMemberAssignmentKey: apply_current,
    ShareGroupStatePartitionMetadataKey: _apply_state_topics,
}
