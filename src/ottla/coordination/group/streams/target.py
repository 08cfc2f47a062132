"""The target of a streams group: the tasks that members should have, computed for an epoch of the group."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.coordination.group.streams.assignor import Wish, assign_sticky
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.group.streams.internal_topics import ConfiguredTopology
from ottla.coordination.group.streams.member import Member
from ottla.coordination.group.streams.records import target_epoch_record, target_record
from ottla.coordination.group.streams.tasks import NO_TARGET, TargetTasks
from ottla.wire.coordinator_records.framing import CoordinatorRecord

STANDBY_REPLICAS: Final = "num.standby.replicas"
"""The one config that an assignment depends on, by the name in the group's record."""


class Target(NamedTuple):
    """What one member should have."""

    epoch: int
    tasks: TargetTasks


def is_too_soon(group: StreamsGroup, interval_ms: int, now_ms: int) -> bool:
    """Say whether the last target is so new that the next one has to wait.

    With an interval of 0 time does not matter: that helps when the wall clock was set back.
    """
    computed_ms = group.assignment_timestamp_ms
    # A time in the future is of a clock that was set back: nobody knows how long ago it was.
    return computed_ms != 0 and computed_ms <= now_ms < computed_ms + interval_ms


def compute_target(
    group: StreamsGroup, new: Member | None, configured: ConfiguredTopology, configs: Mapping[str, str]
) -> dict[str, TargetTasks]:
    """Return what everybody should have once `new` is there: nothing, as long as topics are missing."""
    members = dict(group.members)
    if new is not None:
        members[new.member_id] = new
    if not configured.is_ready or configured.subtopologies is None:
        return dict.fromkeys(members, NO_TARGET)
    wishes = [
        Wish(member_id, member.process_id, group.find_target(member_id))
        for member_id, member in members.items()
    ]
    return assign_sticky(wishes, configured.subtopologies, int(configs.get(STANDBY_REPLICAS, 0)))


def target_records(
    group: StreamsGroup, targets: Mapping[str, TargetTasks], epoch: int, now_ms: int
) -> list[CoordinatorRecord]:
    """Return the records of a new target: what has changed for members, then the epoch."""
    changed = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    return [*changed, target_epoch_record(group.group_id, epoch, now_ms)]
