"""Lag in time: the age of the first record that was not read.

Offsets do not tell it, so the record itself is fetched, one of each partition.
"""

from collections.abc import Sequence
from typing import Final

from ottla.client.admin.group_offsets import PartitionLag
from ottla.client.cluster import Cluster
from ottla.client.fetching import FetchLimits, fetch_once
from ottla.model.ids import TopicPartition
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.errors import RecordsError

_LOOK_BYTES: Final = 1 << 16
"""Enough for a batch of most producers: one record of each partition is all that is looked at."""


async def oldest_unread_ms(
    cluster: Cluster, lags: Sequence[PartitionLag]
) -> dict[TopicPartition, int | None]:
    """Return the timestamp of the first record that was not read, for each partition with a lag.

    None: there is no record, only the end of a transaction.
    """
    left: dict[TopicPartition, int] = {}
    for item in lags:
        if item.lag and item.committed is not None:
            # What was deleted before it was read is not there to be looked at.
            left[item.where] = max(item.committed, item.log_start_offset or 0)
    ends = {item.where: item.log_end_offset or 0 for item in lags}
    found: dict[TopicPartition, int | None] = {}
    limits = FetchLimits(partition_max_bytes=_LOOK_BYTES, max_wait_ms=0)
    # However little may be sent, a broker sends a batch of the first partition that has one. So each round
    # brings some of them further.
    while left:
        before = dict(left)
        for where, answer in (await fetch_once(cluster, left, limits=limits)).items():
            timestamp, left[where] = _first_timestamp(answer.records, left[where])
            if timestamp is not None or left[where] >= ends[where]:
                found[where] = timestamp
                del left[where]
        if left == before:
            break
    return found


def _first_timestamp(records: memoryview, position: int) -> tuple[int | None, int]:
    """Return the timestamp of the first record from a position on, and where to look on for it."""
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
