"""When an active segment is full, and starting the next one."""

from typing import TYPE_CHECKING, Final

from ottla.model.ids import Offset
from ottla.storage.config import LogConfig
from ottla.storage.indexes.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.storage.indexes.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.storage.segment import Segment, segment_path

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
    index_bytes_max = config.segment_index_bytes
    return (
        age_ms > age_ms_max
        or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        # The time index keeps room for the entry it gets when the segment is completed.
        or segment.offset_bytes > index_bytes_max - OFFSET_ENTRY_BYTES
        or segment.time_bytes > index_bytes_max - 2 * TIME_ENTRY_BYTES
    )


def roll(log: "Log", base_offset: Offset, now_ms: int) -> Segment:
    """Complete the active segment and start one at `base_offset`.

    A power cut may keep the new segment and lose the end of the completed one. In a log without gaps recovery
    sees that. A compacted log has gaps, so there the completed segment is synced before it gets a successor.
    """
    completed = log.segments[-1]
    completed.become_inactive()
    if log.config.is_compacted:
        completed.file.sync()
        log.volume.disk.sync_directory(log.path)
    # The recovery point may be at its end already, and then no flush would look at it again.
    log.unsynced_paths = (*log.unsynced_paths, *completed.derived_paths())
    log.take_producer_snapshot(base_offset)
    segment = create_segment(log, base_offset, now_ms)
    log.segments.append(segment)
    log.volume.look_at_room()
    return segment


def create_segment(log: "Log", base_offset: Offset, now_ms: int) -> Segment:
    """Make the files of a new, empty segment. Whatever had its name is from a history that is gone."""
    volume = log.volume
    file = volume.disk.open(segment_path(log.path, base_offset), create=True)
    if file.size():
        file.truncate(0)
    if log.config.preallocate:
        file.allocate(log.config.segment_bytes)
    segment = Segment(volume, file, base_offset, now_ms)
    set_jitter(segment, log.config)
    log.has_unsynced_names = True
    return segment


def set_jitter(segment: Segment, config: LogConfig) -> None:
    """Let a segment be rolled a little earlier than others, so that not all of a topic are at once."""
    bound_ms = min(config.segment_jitter_ms, config.segment_ms)
    segment.roll_jitter_ms = segment.volume.pick_jitter_ms(bound_ms) if bound_ms > 0 else 0
