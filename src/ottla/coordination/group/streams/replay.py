"""Applying the records of streams groups, while serving and while loading alike.

After a compaction the records of one decision may survive only in part, and what is left must still load. So
nothing here insists on an order: a record that speaks of a member brings it into being, and one that takes
something away that is not there does nothing.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.coordination.group.kinds import Group, Replay
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.group.streams.member import GONE, Member, assignment_of_record
from ottla.coordination.group.streams.tasks import TargetTasks, tasks_of
from ottla.coordination.group.streams.topology import topology_of_record
from ottla.wire.coordinator_records.streams_group import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

_DELETED_EPOCH: Final = -1
_Apply = Callable[[StreamsGroup, Any, Any], None]


def streams_replays(
    groups: dict[str, Group], group_is_gone: Callable[[str], None]
) -> dict[type[Any], Replay]:
    """Return how the records of streams groups are applied to the groups of a shard, by type of key."""

    def replay_with(apply: _Apply) -> Replay:
        return lambda key, value, _producer: _replay(groups, group_is_gone, apply, key, value)

    return {key_type: replay_with(apply) for key_type, apply in _APPLY.items()}


def _replay(
    groups: dict[str, Group], group_is_gone: Callable[[str], None], apply: _Apply, key: Any, value: Any
) -> None:
    group = groups.get(key.group_id)
    if not isinstance(group, StreamsGroup):
        if value is None:
            return
        # A classic group that only holds offsets has no record of its own: it gives way.
        group = groups[key.group_id] = StreamsGroup(key.group_id)
    apply(group, key, value)
    if value is None and isinstance(key, StreamsGroupMetadataKey):
        del groups[key.group_id]
        group_is_gone(key.group_id)


def _apply_epoch(
    group: StreamsGroup, _key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
) -> None:
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {
            config.key: config.value for config in value.last_assignment_configs or ()
        }


def _apply_topology(
    group: StreamsGroup, _key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None
) -> None:
    group.topology = None if value is None else topology_of_record(value)


def _apply_member(
    group: StreamsGroup, key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove(key.member_id)
    else:
        group.put(_member(group, key.member_id).with_metadata(value))


def _apply_target_epoch(
    group: StreamsGroup,
    _key: StreamsGroupTargetAssignmentMetadataKey,
    value: StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = _DELETED_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _apply_target(
    group: StreamsGroup,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = TargetTasks(
            tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
        )


def _apply_current(
    group: StreamsGroup,
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.put(_member(group, key.member_id).with_assignment(assignment_of_record(value)))
    elif key.member_id in group.members:
        group.put(group.members[key.member_id].with_assignment(GONE))


def _member(group: StreamsGroup, member_id: str) -> Member:
    return group.members.get(member_id) or Member(member_id)


_APPLY: Final[dict[type[Any], _Apply]] = {
    StreamsGroupMetadataKey: _apply_epoch,
    StreamsGroupTopologyKey: _apply_topology,
    StreamsGroupMemberMetadataKey: _apply_member,
    StreamsGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    StreamsGroupTargetAssignmentMemberKey: _apply_target,
    StreamsGroupCurrentMemberAssignmentKey: _apply_current,
}
