"""When an active segment is full, and starting the next one."""

from typing import TYPE_CHECKING, Final

from ottla.model.ids import Offset
from ottla.storage.names import FileKind, segment_file_name
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log

RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF


def must_roll(log: "Log", size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
    """Say whether a batch or several of `size_bytes` have to start a new segment.

    Age is measured in the records' own time, from the first batch to this one, and by the clock only where
    the first batch has no timestamp. So a marker, which has the time of the clock, may start a new segment
    behind old records.
    """
    segment = log.segments[-1]
    size = segment.size
    if size == 0:
        # Replacing an empty segment by another would help nothing (and the name would be taken).
        return last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
    config = log.config
    if size > config.segment_bytes - size_bytes:
        return True
    age_ms_max = config.segment_ms - segment.roll_jitter_ms
    first_timestamp = segment.first_timestamp
    age_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - segment.modified_ms
    return (
        age_ms > age_ms_max
        or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        or segment.index_is_full(config.segment_index_bytes)
    )


def roll(log: "Log", base_offset: Offset, now_ms: int) -> Segment:
    """Complete the active segment and start one at `base_offset`."""
    log.segments[-1].become_inactive()
    log.take_producer_snapshot(base_offset)
    segment = create_segment(log, base_offset, now_ms)
    log.segments.append(segment)
    return segment


def create_segment(log: "Log", base_offset: Offset, now_ms: int) -> Segment:
    """Make the files of a new, empty segment. Whatever had its name is from a history that is gone."""
    volume = log.volume
    path = f"{log.path}/{segment_file_name(base_offset, FileKind.LOG)}"
    file = volume.disk.open(path, create=True)
    if file.size():
        file.truncate(0)
    if log.config.preallocate:
        file.allocate(log.config.segment_bytes)
    segment = Segment(volume, file, base_offset, now_ms)
    segment.roll_jitter_ms = volume.pick_jitter_ms(min(log.config.segment_jitter_ms, log.config.segment_ms))
    log.has_unsynced_names = True
    return segment
