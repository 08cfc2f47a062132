"""What *committed* means, and the one way to wait for it.

A record is committed when every in-sync replica has it, which the high watermark says, and when it is on this
node's disk, which the recovery point says. The second is asked for only where `ottla.acks.all.sync` is true:

    committed offset = min(high watermark, recovery point)     or the high watermark alone

Produce requests, the logs of the coordinators and transaction markers wait by `when_committed`. Which
replicas need a record is decided by the leader of the partition, which moves the high watermark. How a log is
synced is up to `Volume.syncs`.

With several replicas, the high watermark itself waits for the disks: the leader moves it no further than
`on_disk_up_to` says, and a follower fetches on when `is_on_disk` allows it. So only a partition with one
replica has records below the high watermark that are not on disk. That is on purpose: otherwise every append,
whatever its acks, would need a sync before anybody could read it.

The metadata log has the same two marks. But its quorum counts only what a voter has synced, so there the high
watermark alone says what is committed.

Deviation: Apache Kafka commits what is in the memory of all in-sync replicas.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ottla.model.ids import Offset
from ottla.storage.errors import LeadershipLost, LogDirectoryOffline

if TYPE_CHECKING:
    from ottla.storage.config import LogConfig
    from ottla.storage.log import Log

Tell: TypeAlias = Callable[[LogDirectoryOffline | LeadershipLost | None], None]
"""Called with None when what was waited for is committed, or with why this node will not learn of it."""


def is_on_disk(log: "Log", offset: Offset) -> bool:
    """Say whether everything below `offset` is on this node's disk, or need not be."""
    return offset <= log.recovery_point or not needs_disk(log.config)


def needs_disk(config: "LogConfig") -> bool:
    """Say whether the records of a log are committed only when they are on disk."""
    return config.acks_all_sync


def on_disk_up_to(log: "Log", offset: Offset) -> Offset:
    """Return `offset`, or up to where the records below it are on this node's disk."""
    return offset if is_on_disk(log, offset) else log.recovery_point


def begin_sync(log: "Log") -> None:
    """Have a log synced if what was appended has to be on disk: it runs while followers fetch."""
    if needs_disk(log.config):
        log.volume.syncs.request(log)


def when_on_disk(log: "Log", offset: Offset, tell: Callable[[LogDirectoryOffline | None], None]) -> None:
    """Call `tell` once everything below `offset` is on this node's disk, which `is_on_disk` has denied."""
    log.volume.syncs.request(log, offset, tell)


def committed_offset(log: "Log") -> Offset:
    """Return the offset below which everything is committed."""
    return on_disk_up_to(log, log.high_watermark)


def is_committed(log: "Log", offset: Offset) -> bool:
    """Say whether everything below `offset` is committed."""
    return offset <= log.high_watermark and is_on_disk(log, offset)


def when_committed(log: "Log", offset: Offset, tell: Tell) -> None:
    """Call `tell` once everything below `offset` is committed, maybe at once."""
    if log.high_watermark < offset:
        if log.awaiting_replicas is None:
            log.awaiting_replicas = deque()
        log.awaiting_replicas.append((offset, tell))
    elif is_on_disk(log, offset):
        tell(None)
    else:
        when_on_disk(log, offset, tell)


def high_watermark_moved(log: "Log") -> None:
    """Go on with those who waited for the high watermark to come as far as it is now."""
    awaiting = log.awaiting_replicas
    while awaiting and awaiting[0][0] <= log.high_watermark:
        offset, tell = awaiting.popleft()
        when_committed(log, offset, tell)


def lose_leadership(log: "Log") -> None:
    """Refuse those who wait for replicas: the next leader may not have what they wait for.

    Those who wait for a sync alone go on waiting. All in-sync replicas have their records.
    """
    for tell in _take_awaiting(log):
        tell(LeadershipLost(str(log.topic_partition)))


def cut_off(log: "Log") -> None:
    """Refuse everybody who waits for a log that was truncated: what they wait for may be gone."""
    for tell in (*_take_awaiting(log), *log.volume.syncs.forget(log)):
        tell(LeadershipLost(str(log.topic_partition)))  # type: ignore[arg-type]


def wait_no_more(log: "Log", error: LogDirectoryOffline) -> None:
    """Refuse everybody who waits for a log that is going away."""
    for tell in (*_take_awaiting(log), *log.volume.syncs.forget(log)):
        tell(error)


def wait_on_in(old: "Log", new: "Log") -> None:
    """Let those who wait for a log wait for the one that takes its place, which has all of its records."""
    new.awaiting_replicas, old.awaiting_replicas = old.awaiting_replicas, None
    for tell in old.volume.syncs.forget(old):
        new.volume.syncs.request(new, new.log_end_offset, tell)


def _take_awaiting(log: "Log") -> list[Tell]:
    awaiting, log.awaiting_replicas = log.awaiting_replicas, None
    return [tell for _, tell in awaiting or ()]
