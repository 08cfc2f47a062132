"""Applying the records of consumer groups: what `modern/replay.py` does not already do for all kinds."""

from typing import Any, Final

from ottla.coordination.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.coordination.group.kinds import Group, Replay
from ottla.coordination.group.modern.replay import (
    Apply,
    apply_current,
    apply_epoch,
    apply_member,
    apply_target_epoch,
    modern_replays,
)
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
)


def consumer_replays(groups: dict[str, Group]) -> dict[type[Any], Replay]:
    """Return how the records of consumer groups are applied to the groups of a shard, by type of key."""
    return modern_replays(groups, ConsumerGroup, ConsumerGroupMetadataKey, _APPLY)


def _apply_partition_metadata(
    group: ConsumerGroup,
    _key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _apply_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    target = None
    if value is not None:
        target = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
    group.put_target(key.member_id, target)


def _apply_regex(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.remove_regex(key.regular_expression)
    else:
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
        group.put_regex(key.regular_expression, resolved)


_APPLY: Final[dict[type[Any], Apply[ConsumerGroup]]] = {
    ConsumerGroupMetadataKey: apply_epoch,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: apply_member,
    ConsumerGroupTargetAssignmentMetadataKey: apply_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupCurrentMemberAssignmentKey: apply_current,
    ConsumerGroupRegularExpressionKey: _apply_regex,
}
