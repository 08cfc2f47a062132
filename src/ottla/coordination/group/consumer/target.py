"""The target of a consumer group: what every member should have, computed for an epoch of the group."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.coordination.group.consumer.assignors import ASSIGNORS
from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.coordination.group.consumer.group import NO_PARTITIONS, ConsumerGroup
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.records import target_epoch_record, target_record
from ottla.coordination.group.environment import Environment, Topics
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord


class Target(NamedTuple):
    """What one member should have."""

    epoch: int
    partitions: Partitions


def is_due(group: ConsumerGroup, epoch: int, interval_ms: int, now_ms: int) -> bool:
    """Say whether a target is to be computed for this epoch now.

    Not more often than the interval, so that a hundred members that leave together cost one or two.

    Deviation: Kafka waits until its clock has passed the time of the last target. If the clock was set back
    by an hour, or another node with a slow clock has taken over, the group would get nothing for that long.
    """
    if group.assignment_epoch >= epoch:
        return False
    computed_ms = group.assignment_timestamp_ms
    return computed_ms == 0 or not computed_ms <= now_ms < computed_ms + interval_ms


def compute_target(
    group: ConsumerGroup, old: Member | None, new: Member, assignor: str, env: Environment
) -> Mapping[str, Partitions]:
    """Return what everybody should have once `new` is there, in the place of `old` if there is one."""
    wanted = _WantedTopics(env.topics)
    wishes = {}
    for member_id, member in group.members.items():
        if old is None or member_id != old.member_id:
            assigned = group.targets.get(member_id, NO_PARTITIONS)
            topics = wanted.ids(group.topics_of(member))
            wishes[member_id] = Wish(member_id, topics, member.instance_id, assigned)
    topics = wanted.ids(group.topics_of(new))
    wishes[new.member_id] = Wish(new.member_id, topics, new.instance_id, group.find_target(new))
    return ASSIGNORS[assignor](wishes, wanted.partition_counts)


def target_records(
    group: ConsumerGroup, targets: Mapping[str, Partitions], epoch: int, now_ms: int
) -> list[CoordinatorRecord]:
    """Return the records of a new target: what has changed for members, then the epoch."""
    changed = [
        target_record(group.group_id, member_id, partitions)
        for member_id, partitions in targets.items()
        if group.targets.get(member_id) != partitions
    ]
    return [*changed, target_epoch_record(group.group_id, epoch, now_ms)]


class _WantedTopics:
    """The ids and sizes of subscribed topics. Members mostly want the same, so that is looked up once."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._ids: dict[frozenset[str], frozenset[Uuid]] = {}
        self.partition_counts: dict[Uuid, int] = {}

    def ids(self, names: frozenset[str]) -> frozenset[Uuid]:
        """Return the ids of those topics that exist."""
        known = self._ids.get(names)
        if known is None:
            found = [facts for name in names if (facts := self._topics.find_by_name(name)) is not None]
            self.partition_counts.update((facts.topic_id, facts.partition_count) for facts in found)
            known = self._ids[names] = frozenset(facts.topic_id for facts in found)
        return known
