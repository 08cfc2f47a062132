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
_LOOK_BYTES: Final = 1 << 16
"""Enough for a batch of most producers: one record of each partition is all that is looked at."""


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
) -> "dict[TopicPartition, int | None]":
    """Return the timestamp of the first record that was not read, for each partition with a lag.

    None: there is no record, only the end of a transaction.
    """
    from ottla.client.admin.settings import AdminSettings
    from ottla.client.fetching import FetchLimits, fetch_once
    from ottla.client.security import cluster_for

    left: dict[TopicPartition, int] = {}
    for item in lags:
        if item.lag and item.committed is not None:
            # What was deleted before it was read is not there to be looked at.
            left[item.where] = max(item.committed, item.log_start_offset or 0)
    ends = {item.where: item.log_end_offset or 0 for item in lags}
    found: dict[TopicPartition, int | None] = {}
    if not left:
        return found
    cluster = cluster_for(AdminSettings.of(dict(properties)))
    await cluster.start()
    try:
        limits = FetchLimits(partition_max_bytes=_LOOK_BYTES, max_wait_ms=0)
        # However little may be sent, a broker sends a batch of the first partition that has one. So each
        # round brings some of them further.
        while left:
            before = dict(left)
            for where, answer in (await fetch_once(cluster, left, limits=limits)).items():
                timestamp, left[where] = _first_timestamp(answer.records, left[where])
                if timestamp is not None or left[where] >= ends[where]:
                    found[where] = timestamp
                    del left[where]
            if left == before:
                break
    finally:
        await cluster.close()
    return found


def _first_timestamp(records: memoryview, position: int) -> tuple[int | None, int]:
    """Return the timestamp of the first record from a position on, and where to look on for it."""
    from ottla.records.batch import iter_batches
    from ottla.records.batch_records import iter_batch_records
    from ottla.records.errors import RecordsError

    try:
        for batch in iter_batches(records):
            if not batch.is_control:
                try:
                    for record in iter_batch_records(batch):
                        if record.offset >= position:
                            return record.timestamp, position
                except RecordsError:
                    # Its records cannot be read, but its header says how old they are at least.
                    return batch.max_timestamp, position
            position = max(position, batch.next_offset)
    except RecordsError:
        pass
    return None, position


def total(values: "Sequence[Any]") -> int | None:
    """Add up what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
