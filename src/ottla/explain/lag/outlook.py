"""How far behind a group is, in words, and what will come of it.

The labels are a first reading, no more: a lag of 5,000 records is nothing to one group, an outage to another.
Velocity is how many records a second a group commits, and a partition gains, between two looks. Both together
say when the group will have caught up. Retention says until when it may take for that: records that are
deleted first are never read. Nothing here asks a cluster.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.client.admin.group_offsets import PartitionLag
from ottla.model.ids import TopicPartition

NORMAL: Final = "normal"
CAUTION: Final = "caution"
WARNING: Final = "warning"
CRITICAL: Final = "critical"
LEVELS: Final = (NORMAL, CAUTION, WARNING, CRITICAL)


@dataclass(frozen=True, slots=True)
class Bounds:
    """From which lag on a group gets a label."""

    caution: int = 100
    warning: int = 1_000
    critical: int = 10_000

    def label(self, lag: int | None) -> str | None:
        """Return how bad a lag looks."""
        if lag is None:
            return None
        if lag >= self.critical:
            return CRITICAL
        if lag >= self.warning:
            return WARNING
        return CAUTION if lag >= self.caution else NORMAL


@dataclass(frozen=True, slots=True)
class Velocity:
    """Records a second: how fast a group reads, and how fast a partition grows."""

    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a partition keeps its records: in time, in bytes, or without end where None."""

    time_ms: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionLook:
    """One partition of a group at one moment. Times and speeds are None where they are not known."""

    lag: PartitionLag
    oldest_unread_ms: int | None = None
    velocity: Velocity | None = None
    retention: Retention = Retention()
    record_bytes: float | None = None
    """How many bytes of the log a record takes, on average."""


def velocities(
    before: Sequence[PartitionLag], after: Sequence[PartitionLag], seconds: float
) -> dict[TopicPartition, Velocity]:
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


def seconds_to_zero(looks: Iterable[PartitionLook]) -> float | None:
    """Return when a group will have read everything, at these speeds; None for never, or if nobody knows.

    The slowest partition decides: a group has caught up when all of its partitions have.
    """
    longest = 0.0
    for look in looks:
        lag, velocity = look.lag.lag, look.velocity
        if lag == 0:
            continue
        if lag is None or velocity is None or velocity.reads <= velocity.writes:
            return None
        longest = max(longest, lag / (velocity.reads - velocity.writes))
    return longest


def say_outlook(looks: Sequence[PartitionLook]) -> str | None:
    """Say in a word or two what will come of a lag, at these speeds."""
    speed = total_speed(looks)
    if any(is_past_end(look.lag) for look in looks):
        return "past the end"
    if all(look.lag.lag == 0 for look in looks):
        return "caught up"
    if speed is None:
        return None
    if seconds_to_zero(looks) is not None:
        return "catching up"
    if speed.reads <= 0:
        return "not reading"
    return "falling behind" if speed.reads < speed.writes else "keeping up"


def is_past_end(lag: PartitionLag) -> bool:
    """Say whether an offset is committed that the log does not have. The lag is 0 then, and means nothing."""
    return lag.committed is not None and lag.log_end_offset is not None and lag.committed > lag.log_end_offset


def seconds_to_deletion(look: PartitionLook, now_ms: float) -> float | None:
    """Return how long the oldest unread record is safe from retention; None if it is for ever, or unknown.

    Retention deletes whole segments, so a record may stay for longer than that, and never for less.
    """
    if not look.lag.lag:
        return None
    limits = []
    if look.retention.time_ms is not None and look.oldest_unread_ms is not None:
        limits.append((look.oldest_unread_ms + look.retention.time_ms - now_ms) / 1000)
    writes = 0.0 if look.velocity is None else look.velocity.writes
    if look.retention.size_bytes is not None and look.record_bytes and writes > 0:
        left_bytes = look.retention.size_bytes - look.lag.lag * look.record_bytes
        limits.append(left_bytes / (look.record_bytes * writes))
    return max(min(limits), 0.0) if limits else None


def records_deleted_unread(lag: PartitionLag) -> int:
    """Return how many records were deleted before the group has committed them."""
    if lag.committed is None or lag.log_start_offset is None:
        return 0
    return max(lag.log_start_offset - lag.committed, 0)


def total(values: Iterable[int | None]) -> int | None:
    """Add up what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def total_speed(looks: Iterable[PartitionLook]) -> Velocity | None:
    """Add up the speeds of partitions; None when none is known."""
    known = [look.velocity for look in looks if look.velocity is not None]
    if not known:
        return None
    return Velocity(sum(item.reads for item in known), sum(item.writes for item in known))


def retention_of(configs: Mapping[str, str | None]) -> Retention:
    """Read how long a topic keeps its records. A compacted topic keeps the last ones whatever their age."""
    if "delete" not in (configs.get("cleanup.policy") or "delete"):
        return Retention()
    time_ms, size_bytes = (_limit(configs.get(name)) for name in ("retention.ms", "retention.bytes"))
    return Retention(time_ms, size_bytes)


def _limit(value: str | None) -> int | None:
    return int(value) if value is not None and int(value) >= 0 else None
