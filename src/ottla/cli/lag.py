"""How far behind a group is, in words and in time.

The labels are a first reading, no more: a lag of 5,000 records is nothing to one group, an outage to another.
Lag in time is the age of the first record that was not read. Velocity is how many records a second the group
commits, and the topic gains, between two looks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.client.admin.group_offsets import PartitionLag
    from ottla.model.ids import TopicPartition

CAUTION_FROM: Final = 100
WARNING_FROM: Final = 1_000
CRITICAL_FROM: Final = 10_000


def label_of(lag: int | None) -> str | None:
    """Return how bad a lag looks."""
    if lag is None:
        return None
    if lag < CAUTION_FROM:
        return "normal"
    if lag < WARNING_FROM:
        return "caution"
    return "warning" if lag < CRITICAL_FROM else "critical"


@dataclass(frozen=True)
class Velocity:
    """Records a second: how fast a group reads, and how fast a partition grows."""

    reads: float
    writes: float


def velocities(
    before: "Sequence[PartitionLag]", after: "Sequence[PartitionLag]", seconds: float
) -> "dict[TopicPartition, Velocity]":
    """Compare two looks at a group."""
    earlier = {item.where: item for item in before}
    found = {}
    for item in after:
        old = earlier.get(item.where)
        if old is None:
            continue
        read = _difference(item.committed, old.committed)
        written = _difference(item.log_end_offset, old.log_end_offset)
        if read is not None and written is not None:
            found[item.where] = Velocity(read / seconds, written / seconds)
    return found


def _difference(now: int | None, then: int | None) -> int | None:
    return None if now is None or then is None else now - then


async def oldest_unread_ms(
    properties: Mapping[str, str], lags: "Sequence[PartitionLag]"
) -> "dict[TopicPartition, int]":
    """Return the timestamp of the first record that was not read, for each partition with a lag."""
    from ottla.client.admin.settings import AdminSettings
    from ottla.client.fetching import FetchLimits, fetch_once
    from ottla.client.security import cluster_for
    from ottla.records.batch import iter_batches
    from ottla.records.batch_records import iter_batch_records

    behind = {item.where: item.committed for item in lags if item.lag and item.committed is not None}
    if not behind:
        return {}
    cluster = cluster_for(AdminSettings.of(dict(properties)))
    await cluster.start()
    found: dict[TopicPartition, int] = {}
    try:
        limits = FetchLimits(partition_max_bytes=1, max_wait_ms=0)
        answers = await fetch_once(cluster, behind, limits=limits)
        for where, answer in answers.items():
            for batch in iter_batches(answer.records):
                later = (item for item in iter_batch_records(batch) if item.offset >= behind[where])
                if (record := next(later, None)) is not None:
                    found[where] = record.timestamp
                    break
    finally:
        await cluster.close()
    return found


def total(values: "Sequence[Any]") -> int | None:
    """Add up what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
