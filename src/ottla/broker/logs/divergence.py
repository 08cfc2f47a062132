"""Where a follower cuts its log, so that it is a prefix of the leader's (KIP-101, KIP-279, KIP-595).

The leader says: the largest epoch that I know, up to your last one, is `epoch`, and it ended at `end_offset`
in my log. If the follower knows this epoch, everything behind the smaller of both ends is its own alone. If
it does not, it gives up everything after the largest epoch before it, and the next fetch compares again.
"""

from ottla.model.ids import LeaderEpoch, Offset
from ottla.storage.log import Log


def find_common_end(log: Log, epoch: LeaderEpoch, end_offset: Offset) -> Offset:
    """Return the offset to truncate to, given what the leader has said."""
    log_end = log.log_end_offset
    own = log.end_offset_for_epoch(epoch)
    if own.epoch < 0:
        # No epoch of ours is known: the leader's word is all there is.
        return min(end_offset, log_end)
    if own.epoch != epoch:
        return min(own.start_offset, log_end)
    return min(own.start_offset, end_offset, log_end)
