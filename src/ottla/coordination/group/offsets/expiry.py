"""Offsets that nobody needs any more, and groups that have nothing left (KIP-211).

An offset expires `offsets.retention.minutes` after the moment from which on it ages, which the kind of group
tells; or when its client said, in the old versions of OffsetCommit that could. What somebody reads, and what
an open transaction holds, stays. A group without members and without offsets goes too, unless it is of a kind
that has more than offsets: a share group has positions, which are kept elsewhere, until somebody deletes it.
"""

from collections.abc import Iterable

from ottla.coordination.group.environment import Environment
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.offsets.committed_offsets import (
    CommittedOffset,
    CommittedOffsets,
    offset_tombstone,
)
from ottla.coordination.runtime.decision import Decision
from ottla.wire.coordinator_records.framing import CoordinatorRecord


def decide_expiry(
    groups: Iterable[Group], offsets: CommittedOffsets, env: Environment, now_ms: int
) -> Decision[None]:
    """Let everything go that has expired by now."""
    records: list[CoordinatorRecord] = []
    for group in groups:
        records += _expire_group(group, offsets, env, now_ms)
    return Decision(records=tuple(records), is_atomic=False)


def _expire_group(
    group: Group, offsets: CommittedOffsets, env: Environment, now_ms: int
) -> list[CoordinatorRecord]:
    committed = offsets.of_group(group.group_id)
    expired = [
        topic_partition
        for topic_partition, offset in committed.items()
        if not group.is_subscribed_to(topic_partition.topic)
        and _is_expired(group, offset, env, now_ms)
        and not offsets.is_unstable(group.group_id, topic_partition)
    ]
    records = [offset_tombstone(group.group_id, topic_partition) for topic_partition in expired]
    has_nothing_left = len(expired) == len(committed) and not offsets.has_pending(group.group_id)
    if has_nothing_left and group.is_empty and group.expires:
        records += group.tombstones()
    return records


def _is_expired(group: Group, committed: CommittedOffset, env: Environment, now_ms: int) -> bool:
    base_ms = group.expiry_base_ms(committed)
    if base_ms is None:
        return False
    if committed.has_expiry:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - base_ms >= env.settings.offsets_retention_ms
