"""One round of cleaning of one log: first the offset map is filled, then segments are cleaned group by group.

`clean` is a generator, so that its caller decides about time: it reads a chunk, works on it, and says
how many bytes that were. A driver in a worker thread waits as long as its rate asks for, or stops for good by
closing the generator, which removes what was written. When a group is done the driver has it swapped in
before it goes on.

Everything a round goes by was taken from the log beforehand (`CleaningTask`), so the log may go on being
appended to: what is appended meanwhile lies above `end_offset`, and no batch below it can enter the window of
a producer any more.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.model.ids import FilePosition, Offset, ProducerId
from ottla.records.compression import DecompressionLimits
from ottla.storage.compaction.batches import BatchCleaner
from ottla.storage.compaction.cleaned_segment import CleanedSegment, CleanedSegmentWriter, WrittenBatch
from ottla.storage.compaction.filling import MapFiller
from ottla.storage.compaction.grouping import group_segments
from ottla.storage.compaction.offset_map import OffsetMap
from ottla.storage.compaction.rules import ActiveProducer, Rules
from ottla.storage.compaction.source import CHUNK_BYTES, Chunk, SourceSegment, read_chunks
from ottla.storage.compaction.transactions import CleanedTransactions
from ottla.storage.config import LogConfig
from ottla.storage.indexes.transaction_index import AbortedTransaction
from ottla.world.disk import Disk


class CleaningTask(NamedTuple):
    """What is to be cleaned, as it was when it was decided."""

    directory: str
    config: LogConfig
    # The segments below `end_offset`, in order.
    segments: Sequence[SourceSegment]
    # Of all segments of the log, the active one too: a marker may lie above `end_offset`.
    aborted: Sequence[AbortedTransaction]
    active_producers: Mapping[ProducerId, ActiveProducer]
    first_dirty_offset: Offset
    # Where in its segment a reader finds the first dirty offset.
    first_dirty_position: FilePosition
    end_offset: Offset
    now_ms: int
    # What the log said of itself, to tell whether it was truncated or let go of segments since.
    truncations: int = 0
    log_start_offset: Offset = Offset(0)


class Progress(NamedTuple):
    """Some bytes were read and written."""

    read_bytes: int
    written_bytes: int


class CleanedGroup(NamedTuple):
    """A segment that is to replace others. It has to be swapped in before the cleaning goes on."""

    cleaned: CleanedSegment
    replaced: tuple[Offset, ...]
    truncations: int = 0


class Cleaned(NamedTuple):
    """The round is over: the log is clean up to `first_dirty_offset`, from where the next one starts."""

    first_dirty_offset: Offset
    read_records: int
    kept_records: int


def clean(
    task: CleaningTask, disk: Disk, memory_bytes: int, chunk_bytes: int = CHUNK_BYTES
) -> Generator[Progress | CleanedGroup | Cleaned, None, None]:
    """Clean a log in steps of about `chunk_bytes`. The last step is `Cleaned`.

    Raises `RecordsError` if the log has batches that cannot be read, `OffsetOverflow` if a segment has to be
    split first, and `DiskError`. After an error nothing is left but groups that were swapped in already.
    """
    try:
        yield from _clean(task, disk, memory_bytes, chunk_bytes)
    finally:
        # They have handles of their own. An open one would keep the bytes of a removed file on the disk.
        for segment in task.segments:
            segment.file.close()


def _clean(
    task: CleaningTask, disk: Disk, memory_bytes: int, chunk_bytes: int
) -> Iterator[Progress | CleanedGroup | Cleaned]:
    # The last round's segments may still be `.swap` files on the disk, and a start removes those beside a
    # `.cleaned` file: without this it would remove the only copy.
    disk.sync_directory(task.directory)
    offset_map = OffsetMap(memory_bytes)
    yield from _fill_map(task, offset_map, chunk_bytes)
    offset_map.complete()
    first_dirty_offset = Offset(offset_map.latest_offset + 1)
    rules = Rules(
        offset_map,
        task.active_producers,
        task.end_offset,
        task.now_ms,
        task.config.delete_retention_ms,
        _legacy_horizon_ms(task),
    )
    limits = DecompressionLimits(bytes_max=task.config.decompressed_bytes_max)
    cleaner = BatchCleaner(rules, CleanedTransactions(task.aborted), limits)
    groups = group_segments(
        [segment for segment in task.segments if segment.base_offset < first_dirty_offset],
        segment_bytes=task.config.segment_bytes,
        segment_index_bytes=task.config.segment_index_bytes,
        end_offset=task.end_offset,
    )
    for group in groups:
        yield from _clean_group(task, disk, group, cleaner, chunk_bytes)
    yield Cleaned(first_dirty_offset, cleaner.read_records, cleaner.kept_records)


def _fill_map(task: CleaningTask, offset_map: OffsetMap, chunk_bytes: int) -> Iterator[Progress]:
    limits = DecompressionLimits(bytes_max=task.config.decompressed_bytes_max)
    filler = MapFiller(offset_map, task.first_dirty_offset, CleanedTransactions(task.aborted), limits)
    offset_map.advance(Offset(task.first_dirty_offset - 1))
    for index, segment in enumerate(task.segments):
        is_last = index + 1 == len(task.segments)
        next_offset = task.end_offset if is_last else task.segments[index + 1].base_offset
        if next_offset <= task.first_dirty_offset:
            continue
        position = task.first_dirty_position if segment.base_offset < task.first_dirty_offset else 0
        for chunk in read_chunks(segment, position, chunk_bytes):
            if not filler.add(chunk):
                return
            yield Progress(chunk.size_bytes, 0)
        # Offsets between the last batch and the next segment were looked at as well.
        offset_map.advance(Offset(next_offset - 1))


def _legacy_horizon_ms(task: CleaningTask) -> int:
    """Return up to when segments with tombstones of the old formats must have been modified to lose them."""
    clean = [segment for segment in task.segments if segment.base_offset < task.first_dirty_offset]
    return clean[-1].modified_ms - task.config.delete_retention_ms if clean else 0


def _clean_group(
    task: CleaningTask, disk: Disk, group: list[SourceSegment], cleaner: BatchCleaner, chunk_bytes: int
) -> Iterator[Progress | CleanedGroup]:
    writer = CleanedSegmentWriter(
        disk, task.directory, group[0].base_offset, task.config.index_interval_bytes
    )
    is_complete = False
    try:
        for segment in group:
            for chunk in read_chunks(segment, chunk_bytes=chunk_bytes):
                written_bytes = _clean_chunk(chunk, segment, cleaner, writer)
                yield Progress(chunk.size_bytes, written_bytes)
        cleaned = writer.finish(
            cleaner.transactions.take_retained(),
            group[-1].modified_ms,
            replaces_transaction_index=group[0].has_aborted,
        )
        is_complete = True
    finally:
        if not is_complete:
            writer.abandon()
    yield CleanedGroup(cleaned, tuple(segment.base_offset for segment in group), task.truncations)


def _clean_chunk(
    chunk: Chunk, segment: SourceSegment, cleaner: BatchCleaner, writer: CleanedSegmentWriter
) -> int:
    """Write what stays of a chunk. Neighbours that stay as they are go out as one piece."""
    view = memoryview(chunk.data)
    run: list[WrittenBatch] = []
    run_start = run_end = 0
    for batch in chunk.batches:
        kept = cleaner.clean(chunk.data, batch, segment)
        if run and (kept is None or kept.data is not None):
            writer.add(view[run_start:run_end], run)
            run = []
        if kept is None:
            continue
        if kept.data is not None:
            writer.add(kept.data, (kept.batch,))
            continue
        if not run:
            run_start = batch.start
        run.append(kept.batch)
        run_end = batch.end
    if run:
        writer.add(view[run_start:run_end], run)
    return writer.write_out()
