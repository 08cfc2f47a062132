"""Letting go of the oldest records: too many, too old, or deleted by request.

Only whole segments go, oldest first, up to the first that stays, and only what every replica has. Kafka's
rules: a segment's age is counted from its largest timestamp, and from its file's time if it has none; the
active segment may go too, a new one is started for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.model.ids import Offset
from ottla.storage.deletion import Deletion, take_out
from ottla.storage.errors import OffsetOutOfRange
from ottla.storage.roll import roll
from ottla.storage.segment import Segment
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from ottla.storage.log import Log


def increment_log_start_offset(log: "Log", offset: Offset) -> bool:
    """Delete the records below `offset`, as far as readers are concerned. Says whether there were any.

    The files go with the next `delete_old_segments`.
    """
    log.volume.check()
    if offset > log.high_watermark:
        raise OffsetOutOfRange(offset, log.log_start_offset, log.high_watermark)
    if offset <= log.log_start_offset:
        return False
    log.log_start_offset = offset
    if log.leader_epochs.truncate_from_start(offset):
        log.has_unsynced_epochs = True
    log.producer_state.note_log_start(offset)
    return True


def delete_old_segments(log: "Log", now_ms: int) -> list[Deletion]:
    """Take the segments out of the log that its settings do not keep. Returns the files to be removed."""
    log.volume.check()
    try:
        deletions = _delete_oldest(log, _ends_before_log_start(log), now_ms)
        config = log.config
        if config.is_deleted:
            if config.retention_bytes >= 0:
                deletions += _delete_oldest(log, _exceeds_size(log, config.retention_bytes), now_ms)
            if config.retention_ms >= 0:
                deletions += _delete_oldest(log, _is_older_than(now_ms - config.retention_ms), now_ms)
    except DiskError as error:
        raise log.volume.fail(error) from error
    return deletions


_Rule = Callable[[Segment], bool]


def _ends_before_log_start(log: "Log") -> _Rule:
    return lambda segment: segment is not log.active_segment and log.end_of(segment) <= log.log_start_offset


def _exceeds_size(log: "Log", retention_bytes: int) -> _Rule:
    surplus = log.size_bytes - retention_bytes

    def may_go(segment: Segment) -> bool:
        nonlocal surplus
        if surplus < segment.size:
            return False
        surplus -= segment.size
        return True

    return may_go


def _is_older_than(time_ms: int) -> _Rule:
    return lambda segment: segment.largest_timestamp_ms < time_ms


def _delete_oldest(log: "Log", may_go: _Rule, now_ms: int) -> list[Deletion]:
    going: list[Segment] = []
    for segment in log.segments:
        is_active = segment is log.active_segment
        if is_active and segment.size == 0:
            break
        if log.end_of(segment) > log.high_watermark or not may_go(segment):
            break
        going.append(segment)
    if not going:
        return []
    if len(going) == len(log.segments):
        roll(log, log.log_end_offset, now_ms)
    log.segments = log.segments[len(going) :]
    log.end_position = (Offset(-1), None, 0)
    deletions = take_out(log, going)
    first = log.segments[0].base_offset
    if first > log.log_start_offset:
        increment_log_start_offset(log, first)
    return deletions
