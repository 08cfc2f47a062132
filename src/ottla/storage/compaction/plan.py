"""Taking from a log what a round of cleaning goes by, so that it can run beside the log in another thread."""

from ottla.model.ids import FilePosition, ProducerId
from ottla.storage.compaction.candidates import Candidate
from ottla.storage.compaction.cleaning import CleaningTask
from ottla.storage.compaction.rules import ActiveProducer
from ottla.storage.compaction.source import SourceSegment
from ottla.storage.indexes.transaction_index import AbortedTransaction
from ottla.storage.log import Log
from ottla.storage.producers.producer_state import BATCHES_KEPT
from ottla.storage.segment import Segment


def plan_cleaning(candidate: Candidate, now_ms: int, batches_kept: int = BATCHES_KEPT) -> CleaningTask:
    """Take a picture of a log. The files it names are opened again, for the thread that cleans."""
    log, end = candidate.log, candidate.end_offset
    segments = [segment for segment in log.segments if segment.base_offset < end]
    first_dirty_position = FilePosition(0)
    for segment in segments:
        if segment.base_offset < candidate.first_dirty_offset < log.end_of(segment):
            first_dirty_position = segment.find_scan_position(candidate.first_dirty_offset)
    return CleaningTask(
        directory=log.path,
        config=log.config,
        segments=[_source(log, segment) for segment in segments],
        aborted=_aborted(log),
        active_producers=_active_producers(log, batches_kept),
        first_dirty_offset=candidate.first_dirty_offset,
        first_dirty_position=first_dirty_position,
        end_offset=end,
        now_ms=now_ms,
        truncations=log.truncations,
        log_start_offset=log.log_start_offset,
    )


def is_overtaken(task: CleaningTask, log: Log) -> bool:
    """Say whether the log was truncated, or let go of segments, since the task was planned.

    Then a file may be gone, or end in the middle of a batch, and an error of the cleaning means nothing.
    """
    return log.truncations != task.truncations or log.log_start_offset != task.log_start_offset


def _source(log: Log, segment: Segment) -> SourceSegment:
    return SourceSegment(
        segment.base_offset,
        log.volume.disk.open(segment.file.path),
        segment.size,
        segment.offset_bytes,
        segment.time_bytes,
        segment.has_aborted,
        segment.modified_ms,
    )


def _aborted(log: Log) -> list[AbortedTransaction]:
    """Return all aborted transactions: one that began below the end may have its marker in any segment.

    Deviation: Kafka leaves out those that ended below the log start, and so takes their data for committed
    and their markers for needless. A recovery that reads such a segment would find a transaction that never
    ends.
    """
    return [transaction for segment in log.segments for transaction in segment.aborted()]


def _active_producers(log: Log, batches_kept: int) -> dict[ProducerId, ActiveProducer]:
    return {
        producer_id: ActiveProducer(
            producer.epoch, frozenset(batch[1] for batch in producer.batches[-batches_kept:])
        )
        for producer_id, producer in log.producer_state.producers.items()
    }
