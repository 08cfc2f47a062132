"""Which replica a consumer should read from, by where it is (KIP-392).

Only replicas count that are in sync and have the offset. If the leader is in the consumer's rack, or none of
them is, the consumer stays with the leader.
"""

from collections.abc import Mapping
from typing import Final

from ottla.broker.logs.partition import Partition

HERE: Final = -1


def select_by_rack(
    partition: Partition, fetch_offset: int, rack: str, racks: Mapping[int, str | None], node_id: int
) -> int:
    """Return the broker to read from, or `HERE`. `racks` has the brokers that serve."""
    leading = partition.leading
    if leading is None or racks.get(node_id) == rack:
        return HERE
    near = [
        replica
        for replica in leading.followers.values()
        if replica.broker_id in partition.in_sync
        and racks.get(replica.broker_id) == rack
        and 0 <= replica.log_start_offset <= fetch_offset <= replica.log_end_offset
    ]
    if not near:
        return HERE
    # The one that has most. Of several, the one that had everything last.
    return max(near, key=lambda one: (one.log_end_offset, one.caught_up_ms, one.broker_id)).broker_id
