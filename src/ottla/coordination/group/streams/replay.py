"""Applying the records of streams groups: what `modern/replay.py` does not already do for all kinds."""

from collections.abc import Callable
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
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.group.streams.tasks import TargetTasks, tasks_of
from ottla.coordination.group.streams.topology import topology_of_record
from ottla.wire.coordinator_records.streams_group import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)


def streams_replays(
    groups: dict[str, Group], group_is_gone: Callable[[str], None]
) -> dict[type[Any], Replay]:
    """Return how the records of streams groups are applied to the groups of a shard, by type of key."""
    return modern_replays(groups, StreamsGroup, StreamsGroupMetadataKey, _APPLY, group_is_gone)


def _apply_epoch(
    group: StreamsGroup, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
) -> None:
    if value is not None:
        apply_epoch(group, key, value)
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {
            config.key: config.value for config in value.last_assignment_configs or ()
        }


def _apply_topology(
    group: StreamsGroup, _key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None
) -> None:
    group.topology = None if value is None else topology_of_record(value)


def _apply_target(
    group: StreamsGroup,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    target = None
    if value is not None:
        target = TargetTasks(
            tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
        )
    group.put_target(key.member_id, target)


_APPLY: Final[dict[type[Any], Apply[StreamsGroup]]] = {
    StreamsGroupMetadataKey: _apply_epoch,
    StreamsGroupTopologyKey: _apply_topology,
    StreamsGroupMemberMetadataKey: apply_member,
    StreamsGroupTargetAssignmentMetadataKey: apply_target_epoch,
    StreamsGroupTargetAssignmentMemberKey: _apply_target,
    StreamsGroupCurrentMemberAssignmentKey: apply_current,
}
