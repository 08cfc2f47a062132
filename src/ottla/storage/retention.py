"""Letting go of the oldest records: too many, too old, or deleted by request.

Only whole segments go, oldest first, up to the first that stays, and only what every replica has. Kafka's
rules: a segment's age is counted from its largest timestamp, and from its file's time if it has none; the
active segment may go too, a new one is started for it.

When several segments go at once, a power cut may bring some of them back and not others, and recovery would
take the gap for the end of the log. So the log start is made durable first, and a start drops what is below.
Afterwards the new names are: the next checkpoint says nothing of a log that starts with its first segment.
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


def delete_old_segments(
    log: "Log", now_ms: int, keep_log_start: Callable[[], None] | None = None
) -> list[Deletion]:
    """Take the segments out of the log that its settings do not keep. Returns the files to be removed.

    `keep_log_start` makes the log start durable, where nobody else does.
    """
    log.volume.check()
    try:
        going = _find_going(log, now_ms)
        return _delete(log, going, now_ms, keep_log_start) if going else []
    except DiskError as error:
        raise log.volume.fail(error) from error


_Rule = Callable[[Segment], bool]


def _find_going(log: "Log", now_ms: int) -> list[Segment]:
    """Return the segments that go, oldest first. Each rule goes on where the one before it stopped."""
    config = log.config
    going: list[Segment] = []
    _add_oldest(going, log, _ends_before_log_start(log))
    if config.is_deleted and config.retention_bytes >= 0:
        left_bytes = log.size_bytes - sum([segment.size for segment in going])
        _add_oldest(going, log, _exceeds_size(left_bytes - config.retention_bytes))
    if config.is_deleted and config.retention_ms >= 0:
        _add_oldest(going, log, _is_older_than(now_ms - config.retention_ms))
    return going


def _add_oldest(going: list[Segment], log: "Log", may_go: _Rule) -> None:
    for segment in log.segments[len(going) :]:
        is_empty_active = segment is log.active_segment and segment.size == 0
        if is_empty_active or log.end_of(segment) > log.high_watermark or not may_go(segment):
            return
        going.append(segment)


def _ends_before_log_start(log: "Log") -> _Rule:
    return lambda segment: segment is not log.active_segment and log.end_of(segment) <= log.log_start_offset


def _exceeds_size(surplus_bytes: int) -> _Rule:
    def may_go(segment: Segment) -> bool:
        nonlocal surplus_bytes
        if surplus_bytes < segment.size:
            return False
        surplus_bytes -= segment.size
        return True

    return may_go


def _is_older_than(time_ms: int) -> _Rule:
    return lambda segment: segment.largest_timestamp_ms < time_ms


def _delete(
    log: "Log", going: list[Segment], now_ms: int, keep_log_start: Callable[[], None] | None
) -> list[Deletion]:
    if len(going) == len(log.segments):
        roll(log, log.log_end_offset, now_ms)
    first = log.segments[len(going)].base_offset
    if first > log.log_start_offset:
        increment_log_start_offset(log, first)
    if log.has_unsynced_names or log.recovery_point < first:
        # Else nothing might be left after a power cut, and the log would start again at offset 0.
        log.volume.disk.sync_directory(log.path)
    if len(going) == 1:
        keep_log_start = None
    if keep_log_start is not None:
        keep_log_start()
    log.segments = log.segments[len(going) :]
    log.end_position = (Offset(-1), None, 0)
    deletions = take_out(log, going)
    if keep_log_start is not None:
        log.volume.disk.sync_directory(log.path)
    return deletions
