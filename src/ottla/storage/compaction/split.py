"""Splitting a segment whose offsets reach more than 2^31 - 1 beyond its base offset.

An index entry has 31 bits for an offset, so such a segment cannot be indexed. Old versions of Kafka made
them: they put segments together by compaction without looking at offsets (KAFKA-5413, KAFKA-6264). The parts
are written beside the log like a cleaned segment, and swapped in for it.

The first part starts where the segment did, even if that leaves it empty: a start that finishes the swap
removes the segments that begin within the parts' offsets, and this one has to be among them.

Deviation: Kafka leaves the parts without a transaction index, so that aborted records become visible. Here
each part gets the entries of the markers it holds.
"""

from collections.abc import Generator, Sequence

from ottla.model.ids import Offset
from ottla.records.batch_records import iter_batch_records
from ottla.storage.compaction.cleaned_segment import CleanedSegment, CleanedSegmentWriter, WrittenBatch
from ottla.storage.compaction.cleaning import Progress
from ottla.storage.compaction.source import (
    CHUNK_BYTES,
    PlacedBatch,
    PlacedMessage,
    SourceSegment,
    read_chunks,
)
from ottla.storage.compaction.swap import stage_swap
from ottla.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from ottla.storage.indexes.transaction_index import AbortedTransaction, decode_transaction_index
from ottla.storage.names import SEGMENT_KINDS, FileKind, segment_file_name
from ottla.world.disk import Disk


def split_segment(
    segment: SourceSegment,
    aborted: Sequence[AbortedTransaction],
    disk: Disk,
    directory: str,
    index_interval_bytes: int,
    chunk_bytes: int = CHUNK_BYTES,
) -> Generator[Progress | tuple[CleanedSegment, ...], None, None]:
    """Write the parts of a segment in steps of about `chunk_bytes`. The last step are the parts.

    `aborted` are the entries of the segment's transaction index. Closing the generator early, or an error,
    removes what was written.
    """
    writers = [CleanedSegmentWriter(disk, directory, segment.base_offset, index_interval_bytes)]
    is_complete = False
    try:
        for chunk in read_chunks(segment, chunk_bytes=chunk_bytes):
            view = memoryview(chunk.data)
            written_bytes = 0
            for batch in chunk.batches:
                written = _written(batch)
                if written.last_offset - writers[-1].base_offset > RELATIVE_OFFSET_MAX:
                    written_bytes += writers[-1].write_out()
                    start = _first_offset(batch)
                    writers.append(CleanedSegmentWriter(disk, directory, start, index_interval_bytes))
                writers[-1].add(view[batch.start : batch.end], (written,))
            yield Progress(chunk.size_bytes, written_bytes + writers[-1].write_out())
        ends = [*(writer.base_offset for writer in writers[1:]), None]
        parts = tuple(
            writer.finish(
                _within(aborted, writer.base_offset, end),
                segment.modified_ms,
                replaces_transaction_index=segment.has_aborted and writer is writers[0],
            )
            for writer, end in zip(writers, ends, strict=True)
        )
        is_complete = True
    finally:
        if not is_complete:
            for writer in writers:
                writer.abandon()
    assert sum(part.size_bytes for part in parts) == segment.size_bytes, "every batch is in one of the parts"
    yield parts


def find_overflowing(segments: Sequence[SourceSegment], offset: Offset) -> SourceSegment | None:
    """Return the segment that holds `offset`, if that is too far from its base offset."""
    holder = max((one for one in segments if one.base_offset <= offset), default=None, key=_base_offset)
    return None if holder is None or offset - holder.base_offset <= RELATIVE_OFFSET_MAX else holder


def _base_offset(segment: SourceSegment) -> Offset:
    return segment.base_offset


def split_on_disk(disk: Disk, directory: str, base_offset: Offset, index_interval_bytes: int) -> None:
    """Split a segment of a log that is not loaded, as far as `.swap` files. The next load does the rest."""
    paths = {kind: f"{directory}/{segment_file_name(base_offset, kind)}" for kind in SEGMENT_KINDS}
    file = disk.open(paths[FileKind.LOG])
    aborted: list[AbortedTransaction] = []
    has_aborted = disk.exists(paths[FileKind.TRANSACTION_INDEX])
    if has_aborted:
        content = disk.read_file(paths[FileKind.TRANSACTION_INDEX])
        aborted = decode_transaction_index(content, base_offset)
    modified_ms = next(
        entry.modified_ms
        for entry in disk.list(directory)
        if entry.name == segment_file_name(base_offset, FileKind.LOG)
    )
    segment = SourceSegment(base_offset, file, file.size(), 0, 0, has_aborted, modified_ms)
    for step in split_segment(segment, aborted, disk, directory, index_interval_bytes):
        if not isinstance(step, Progress):
            stage_swap(disk, directory, step)
    file.close()


def _written(batch: PlacedBatch | PlacedMessage) -> WrittenBatch:
    header = batch.message if isinstance(batch, PlacedMessage) else batch.header
    return WrittenBatch(batch.end - batch.start, header.last_offset, header.max_timestamp)


def _first_offset(batch: PlacedBatch | PlacedMessage) -> Offset:
    if isinstance(batch, PlacedMessage):
        # A message that wraps others has the offset of the last of them.
        return Offset(next(iter(iter_batch_records(batch.message))).offset)
    return Offset(batch.header.base_offset)


def _within(
    aborted: Sequence[AbortedTransaction], start: Offset, end: Offset | None
) -> list[AbortedTransaction]:
    return [
        transaction
        for transaction in aborted
        if start <= transaction.last_offset and (end is None or transaction.last_offset < end)
    ]
