"""Finding records by time: the first one at or after a timestamp, and the latest one of all."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.model.ids import LeaderEpoch, Offset
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.codec import Record
from ottla.records.errors import RecordsError
from ottla.storage.damages.unhealed import check_undamaged
from ottla.storage.read import ReadLimit, limit_offset
from ottla.storage.scan import BatchPlace
from ottla.storage.segment import Segment
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from ottla.storage.log import Log


class TimestampAndOffset(NamedTuple):
    """A record found by its timestamp, and the epoch of the leader that appended it."""

    timestamp_ms: int
    offset: Offset
    leader_epoch: LeaderEpoch


def find_offset_for_timestamp(log: "Log", timestamp_ms: int, limit: ReadLimit) -> TimestampAndOffset | None:
    """Find the first record whose timestamp is at least `timestamp_ms` and that a reader may see."""
    log.volume.check()
    check_undamaged(log)
    try:
        for segment in log.segments_from(log.log_start_offset):
            if segment.largest.timestamp_ms >= timestamp_ms:
                found = _find_in_segment(segment, timestamp_ms, log.log_start_offset)
                if found is not None:
                    return found if found.offset < limit_offset(log, limit) else None
    except DiskError as error:
        raise log.volume.fail(error) from error
    return None


def find_max_timestamp(log: "Log") -> TimestampAndOffset | None:
    """Find the first record that has the largest timestamp of the log."""
    log.volume.check()
    check_undamaged(log)
    try:
        segment = max(log.segments, key=lambda segment: segment.largest.timestamp_ms)
        timestamp_ms, offset = segment.largest
        if timestamp_ms < 0:
            return None
        for place in segment.scan_from(offset):
            if place.max_timestamp == timestamp_ms:
                return _find_in_batch(segment, place, timestamp_ms, Offset(0))
    except DiskError as error:
        raise log.volume.fail(error) from error
    return None


def _find_in_segment(segment: Segment, timestamp_ms: int, start: Offset) -> TimestampAndOffset | None:
    entry = segment.find_time_entry(timestamp_ms)
    for place in segment.scan_from(max(entry.offset, start)):
        if place.max_timestamp >= timestamp_ms and place.last_offset >= start:
            found = _find_in_batch(segment, place, timestamp_ms, start)
            if found is not None:
                return found
    return None


def _find_in_batch(
    segment: Segment, place: BatchPlace, timestamp_ms: int, start: Offset
) -> TimestampAndOffset | None:
    for record in _records_of(segment, place):
        if record.timestamp >= timestamp_ms and record.offset >= start:
            return TimestampAndOffset(
                record.timestamp, Offset(record.offset), LeaderEpoch(place.leader_epoch)
            )
    return None


def _records_of(segment: Segment, place: BatchPlace) -> Iterator[Record]:
    content = memoryview(segment.file.read(place.position, place.size_bytes))
    batch: BatchView | None = next(iter_batches(content), None)
    try:
        if batch is not None:
            yield from iter_batch_records(batch)
    except RecordsError:
        # A batch that cannot be opened has no record to find. A reader that fetches it will see what is
        # wrong.
        return
