"""Which logs are worth cleaning: how dirty they are, and how far they may be cleaned.

    log start ... first dirty offset ... end offset ... log end
    |   clean    |       cleanable      |  not yet    |

Clean is what earlier rounds have seen; the checkpoint of the cleaner says how far they got. Not yet cleanable
are the active segment, transactions that are undecided, what has not been synced, and segments with records
younger than `min.compaction.lag.ms`.

A log is cleaned once more than `min.cleanable.dirty.ratio` of its bytes are dirty, or once a dirty record is
older than `max.compaction.lag.ms`. The dirtiest goes first.

Deviation: Kafka cleans what was not synced, too. In Ottla a sync may be under way in another thread, by the
names of files that the swap would change; below the recovery point there is none.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.model.ids import Offset
from ottla.storage.log import Log
from ottla.storage.segment import Segment


class Candidate(NamedTuple):
    """A log with something to clean."""

    log: Log
    first_dirty_offset: Offset
    end_offset: Offset
    clean_bytes: int
    cleanable_bytes: int
    # A dirty record is older than it may become without being compacted.
    is_overdue: bool
    # The checkpoint did not fit the log (it was truncated, or its start has moved) and has to be replaced.
    checkpoint_is_stale: bool

    @property
    def dirty_ratio(self) -> float:
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_worth_cleaning(self) -> bool:
        if self.cleanable_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def find_candidate(log: Log, checkpoint: Offset | None, now_ms: int) -> Candidate:
    """Say what there is to clean of a log that earlier rounds cleaned up to `checkpoint`."""
    is_stale = checkpoint is not None and not log.log_start_offset <= checkpoint <= log.log_end_offset
    first_dirty = log.log_start_offset if checkpoint is None or is_stale else checkpoint
    dirty = [segment for segment in log.segments[:-1] if log.end_of(segment) > first_dirty]
    end = _end_offset(log, first_dirty, dirty, now_ms)
    # Kafka counts whole segments, and the one that the first dirty offset lies within on both sides.
    clean_bytes = sum(segment.size for segment in log.segments if segment.base_offset < first_dirty)
    cleanable_bytes = sum(segment.size for segment in dirty if segment.base_offset < end)
    return Candidate(
        log, first_dirty, end, clean_bytes, cleanable_bytes, _is_overdue(log, dirty, now_ms), is_stale
    )


def choose_dirtiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the candidate to clean next, or None if none is worth it."""
    worth = [candidate for candidate in candidates if candidate.is_worth_cleaning]
    return max(worth, key=lambda candidate: candidate.dirty_ratio, default=None)


def _end_offset(log: Log, first_dirty: Offset, dirty: Sequence[Segment], now_ms: int) -> Offset:
    """Return where cleaning has to stop: where a segment starts that cannot be cleaned as a whole."""
    end = min(log.last_stable_offset, log.active_segment.base_offset, log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        young = (segment.base_offset for segment in dirty if segment.largest_timestamp_ms > now_ms - lag_ms)
        end = min(end, next(young, end))
    return next(log.segments_from(max(first_dirty, end))).base_offset


def _is_overdue(log: Log, dirty: Sequence[Segment], now_ms: int) -> bool:
    lag_ms = max(log.config.max_compaction_lag_ms, 0)
    timestamps = [segment.first_timestamp for segment in dirty if segment.first_timestamp > 0]
    return bool(timestamps) and min(timestamps) < now_ms - lag_ms
