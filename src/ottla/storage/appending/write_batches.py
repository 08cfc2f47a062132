"""Writing batches that have their offsets: several at once, and all that follows from each.

If a write fails, the segment is cut back to where it was, and the log directory goes offline: of the batches
nothing is in the log, whatever the disk did.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ottla.model.ids import LeaderEpoch, Offset
from ottla.records.batch import BatchHeader, BatchView, iter_batches
from ottla.records.errors import CorruptBatch
from ottla.storage.appending.verification import end_verification
from ottla.storage.errors import AppendError, LogDirectoryOffline
from ottla.storage.producers.replay import aborted_transaction_of, replay_batch
from ottla.storage.roll import RELATIVE_OFFSET_MAX, must_roll, roll
from ottla.wire.error_code import ErrorCode
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from ottla.storage.log import Log
    from ottla.storage.segment import Segment


class AssignedBatch(NamedTuple):
    """A batch with its offset, at a position within what is appended at once."""

    position: int
    header: BatchHeader
    view: memoryview


def whole_batches(records: memoryview) -> list[BatchView]:
    """Return the batches, without one that is cut off at the end."""
    try:
        return list(iter_batches(records))
    except CorruptBatch as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def write_batches(log: "Log", batches: list[AssignedBatch], now_ms: int) -> bool:
    """Write batches at once and take notice of each. Says whether a new segment was started."""
    first, last = batches[0].header, batches[-1].header
    size_bytes = batches[-1].position + len(batches[-1].view)
    max_timestamp = max([assigned.header.max_timestamp for assigned in batches])
    start: int | None = None
    try:
        rolls = must_roll(log, size_bytes, last.last_offset, max_timestamp, now_ms)
        segment = roll(log, _base_of_next(log, first, last), now_ms) if rolls else log.active_segment
        start = segment.size
        segment.file.write(start, [assigned.view for assigned in batches])
        for assigned in batches:
            _note(log, segment, start, assigned)
    except DiskError as error:
        raise give_up(log, error, start) from error
    return rolls


def _base_of_next(log: "Log", first: BatchHeader, last: BatchHeader) -> Offset:
    """Return the base offset of a new segment.

    Deviation: Kafka takes the first batch's offset, ours starts where the last segment ended, also when a
    follower gets batches with a gap before them. So a gap between segments always means that some is lost.
    """
    is_indexable = last.last_offset - log.log_end_offset <= RELATIVE_OFFSET_MAX
    return log.log_end_offset if is_indexable else Offset(first.base_offset)


def _note(log: "Log", segment: "Segment", start: int, assigned: AssignedBatch) -> None:
    header = assigned.header
    if header.leader_epoch >= 0 and header.leader_epoch != log.leader_epochs.latest:
        log.assign_leader_epoch(LeaderEpoch(header.leader_epoch), Offset(header.base_offset))
    segment.note_batch(
        start + assigned.position,
        len(assigned.view),
        header.last_offset,
        header.max_timestamp,
        log.config.index_interval_bytes,
    )
    log.log_end_offset = Offset(header.next_offset)
    if header.producer_id >= 0:
        completed = replay_batch(log.producer_state, header, assigned.view)
        if completed is not None and completed.is_aborted:
            segment.add_aborted(aborted_transaction_of(completed))
        if log.verifications:
            end_verification(log.verifications, header)


def give_up(log: "Log", error: DiskError, size: int | None) -> LogDirectoryOffline:
    """Cut the active segment back to what it was, as far as the disk still lets us. Returns what to raise."""
    segment = log.active_segment
    # If that fails too, recovery finds the rest: it lies above the recovery point.
    with suppress(DiskError):
        segment.file.truncate(segment.size if size is None else size)
    return log.volume.fail(error)
