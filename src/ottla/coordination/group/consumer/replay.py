"""Applying the records of consumer groups, while serving and while loading alike.

After a compaction the records of one decision may survive only in part, and what is left must still load. So
nothing here insists on an order: a record that speaks of a member brings it into being, and one that takes
something away that is not there does nothing.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.coordination.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.coordination.group.consumer.member import GONE, Member, assignment_of_record
from ottla.coordination.group.kinds import Group, Replay
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

_DELETED_EPOCH: Final = -1
_Apply = Callable[[ConsumerGroup, Any, Any], None]


def consumer_replays(groups: dict[str, Group]) -> dict[type[Any], Replay]:
    """Return how the records of consumer groups are applied to the groups of a shard, by type of key."""

    def replay_with(apply: _Apply) -> Replay:
        return lambda key, value, _producer: _replay(groups, apply, key, value)

    return {key_type: replay_with(apply) for key_type, apply in _APPLY.items()}


def _replay(groups: dict[str, Group], apply: _Apply, key: Any, value: Any) -> None:
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        # A classic group that only holds offsets has no record of its own: it gives way.
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    apply(group, key, value)
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        del groups[key.group_id]


def _apply_epoch(
    group: ConsumerGroup, _key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> None:
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _apply_partition_metadata(
    group: ConsumerGroup,
    _key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _apply_member(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove(key.member_id)
    else:
        group.put(_member(group, key.member_id).with_metadata(value))


def _apply_target_epoch(
    group: ConsumerGroup,
    _key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = _DELETED_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _apply_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
        }


def _apply_current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.put(_member(group, key.member_id).with_assignment(assignment_of_record(value)))
    elif key.member_id in group.members:
        group.put(group.members[key.member_id].with_assignment(GONE))


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


def _member(group: ConsumerGroup, member_id: str) -> Member:
    return group.members.get(member_id) or Member(member_id)


_APPLY: Final[dict[type[Any], _Apply]] = {
    ConsumerGroupMetadataKey: _apply_epoch,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: _apply_member,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_current,
    ConsumerGroupRegularExpressionKey: _apply_regex,
}
