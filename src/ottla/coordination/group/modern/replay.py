"""Applying the records of modern groups, while serving and while loading alike.

After a compaction the records of one decision may survive only in part, and what is left must still load. So
nothing here insists on an order: a record about a member creates it if it is missing, and one that removes
something that is not there does nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ottla.coordination.group.kinds import Group, Replay
from ottla.coordination.group.modern.group import ModernGroup

AnyModernGroup = ModernGroup[Any, Any]
G = TypeVar("G", bound=AnyModernGroup)
Apply = Callable[[G, Any, Any], None]
"""Applies a record of one type to its group: key, and value (None for a tombstone)."""

_DELETED_EPOCH: Final = -1


def modern_replays(
    groups: dict[str, Group],
    group_type: type[G],
    metadata_key: type[Any],
    applied: Mapping[type[Any], Apply[G]],
    group_is_gone: Callable[[str], None] | None = None,
) -> dict[type[Any], Replay]:
    """Return how the records of one kind of group are applied to the groups of a shard, by type of key.

    The tombstone of a key of type `metadata_key` deletes the group. `group_is_gone` is then called.
    """

    def replay(apply: Apply[G], key: Any, value: Any) -> None:
        group: Any = groups.get(key.group_id)
        if not isinstance(group, group_type):
            if value is None:
                return
            # A classic group that only holds offsets has no record of its own, and is replaced.
            group = group_type(key.group_id)
            groups[key.group_id] = group
        apply(group, key, value)
        if value is None and isinstance(key, metadata_key):
            del groups[key.group_id]
            if group_is_gone is not None:
                group_is_gone(key.group_id)

    def replay_with(apply: Apply[G]) -> Replay:
        return lambda key, value, _producer: replay(apply, key, value)

    return {key_type: replay_with(apply) for key_type, apply in applied.items()}


def apply_epoch(group: AnyModernGroup, _key: Any, value: Any) -> None:
    """Apply the epoch of the group, and the hash of the topics for which it holds."""
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def apply_member(group: AnyModernGroup, key: Any, value: Any) -> None:
    """Apply what a member is and what it subscribes to."""
    if value is None:
        group.remove(key.member_id)
    else:
        group.put(_member(group, key.member_id).with_metadata(value))


def apply_target_epoch(group: AnyModernGroup, _key: Any, value: Any) -> None:
    """Apply the epoch of the group for which the target was computed."""
    group.assignment_epoch = _DELETED_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def apply_current(group: AnyModernGroup, key: Any, value: Any) -> None:
    """Apply what a member has."""
    if value is not None:
        group.put(_member(group, key.member_id).with_current(value))
    elif key.member_id in group.members:
        group.put(group.members[key.member_id].without_current())


def _member(group: AnyModernGroup, member_id: str) -> Any:
    return group.members.get(member_id) or group.new_member(member_id)
