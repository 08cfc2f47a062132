"""Putting what another replica has in the place of damage.

Replicas of a log are the same bytes, so mostly what is missing has exactly the size of the damage, and is
written over it. Two replicas may have been compacted differently, and a start may have covered the damage
with batches of another size. Then the segment is written again beside the log, to be swapped in like a
cleaned one.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.ids import Offset
from ottla.records.batch import BatchHeader, iter_batches
from ottla.records.errors import RecordsError
from ottla.storage.compaction.cleaned_segment import CleanedSegment, CleanedSegmentWriter, WrittenBatch
from ottla.storage.compaction.source import PlacedMessage, SourceSegment, read_chunks
from ottla.storage.damages.damage import keep_range
from ottla.storage.damages.unhealed import Unhealed
from ottla.storage.indexes.transaction_index import AbortedTransaction
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.world.disk import Disk

if TYPE_CHECKING:
    from ottla.storage.log import Log


_OFFSET_BYTES: Final = 8


class Splice(NamedTuple):
    """Sound batches, and where they belong."""

    directory: str
    path: str
    segment_size: int
    modified_ms: int
    range: Unhealed
    content: bytes
    aborted: tuple[AbortedTransaction, ...]
    has_transaction_index: bool
    index_interval_bytes: int

    @property
    def fits(self) -> bool:
        """Say whether the batches can be written over the damage."""
        return len(self.content) == self.range.end - self.range.position


def plan_splice(log: "Log", unhealed: Unhealed, content: bytes) -> Splice | None:
    """Say where batches belong. None if the segment is no longer part of the log."""
    for segment in log.segments:
        if segment.base_offset == unhealed.base_offset:
            return Splice(
                log.path,
                segment.file.path,
                segment.size,
                segment.modified_ms,
                unhealed,
                content,
                tuple(segment.aborted()),
                segment.has_aborted,
                log.config.index_interval_bytes,
            )
    return None


def put_back(log: "Log", unhealed: Unhealed) -> bytes:
    """Return a batch whose base offset alone is wrong, with the right one."""
    assert unhealed.is_displaced, "otherwise nobody knows what is right"
    segment = next(log.segments_from(unhealed.first_offset))
    content = segment.file.read(unhealed.position, unhealed.end - unhealed.position)
    return unhealed.first_offset.to_bytes(_OFFSET_BYTES) + content[_OFFSET_BYTES:]


class Received:
    """What another replica has sent so far of a damaged range."""

    def __init__(self, unhealed: Unhealed, epochs: LeaderEpochs) -> None:
        self._range = unhealed
        self._epochs = epochs
        self._batches: list[bytes] = []
        self.size_bytes = 0
        self.next_offset = unhealed.first_offset
        self.is_transactional = False

    @property
    def content(self) -> bytes:
        """The batches, one after the other."""
        return b"".join(self._batches)

    @property
    def is_complete(self) -> bool:
        """Say whether everything up to the end of the range is there."""
        return self.next_offset >= self._range.next_offset

    def take(self, records: memoryview) -> bool:
        """Take batches. False: they are not those that were here, or damaged themselves."""
        try:
            for batch in iter_batches(records):
                header = batch.header
                if header.last_offset < self.next_offset:
                    continue
                if header.base_offset >= self._range.next_offset:
                    self.next_offset = self._range.next_offset
                    break
                if not self._fits(header) or not batch.crc_is_valid():
                    return False
                self._batches.append(bytes(batch.view))
                self.size_bytes += len(self._batches[-1])
                self.is_transactional |= header.is_transactional or header.is_control
                self.next_offset = Offset(header.last_offset + 1)
        except RecordsError:
            return False
        return True

    def _fits(self, header: BatchHeader) -> bool:
        """Say whether a batch belongs here. With its offset and its epoch, no other can have been here."""
        known = self._epochs.epoch_for(Offset(header.base_offset))
        return (
            header.base_offset >= self.next_offset
            and header.last_offset < self._range.next_offset
            and (known < 0 or header.leader_epoch == known)
        )


def keep_damage(disk: Disk, splice: Splice) -> str:
    """Copy the damaged bytes aside. Returns where they are."""
    file = disk.open(splice.path)
    try:
        base_offset, position, end, *_ = splice.range
        return keep_range(disk, splice.directory, base_offset, file, position, end)
    finally:
        file.close()


def read_damage(disk: Disk, splice: Splice) -> bytes:
    """Return the damaged bytes."""
    file = disk.open(splice.path)
    try:
        return file.read(splice.range.position, splice.range.end - splice.range.position)
    finally:
        file.close()


def write_over(disk: Disk, splice: Splice) -> None:
    """Write the batches over the damage, for good."""
    file = disk.open(splice.path)
    try:
        file.write(splice.range.position, (splice.content,))
        file.sync()
    finally:
        file.close()


def write_again(disk: Disk, splice: Splice) -> CleanedSegment:
    """Write the segment beside the log, with the batches in the place of the damage."""
    base_offset, position, end, *_ = splice.range
    file = disk.open(splice.path)
    writer = CleanedSegmentWriter(disk, splice.directory, base_offset, splice.index_interval_bytes)
    is_complete = False
    try:
        for data, batches in _copied(SourceSegment(base_offset, file, position, 0, 0, False, 0), 0):
            writer.add(data, batches)
            writer.write_out()
        writer.add(splice.content, _written(splice.content))
        rest = SourceSegment(base_offset, file, splice.segment_size, 0, 0, False, 0)
        for data, batches in _copied(rest, end):
            writer.add(data, batches)
            writer.write_out()
        cleaned = writer.finish(
            list(splice.aborted),
            splice.modified_ms,
            replaces_transaction_index=splice.has_transaction_index,
        )
        is_complete = True
        return cleaned
    finally:
        file.close()
        if not is_complete:
            writer.abandon()


def _copied(source: SourceSegment, position: int) -> Iterator[tuple[memoryview, Sequence[WrittenBatch]]]:
    for chunk in read_chunks(source, position):
        written = []
        for batch in chunk.batches:
            header = batch.message if isinstance(batch, PlacedMessage) else batch.header
            written.append(WrittenBatch(batch.end - batch.start, header.last_offset, header.max_timestamp))
        yield memoryview(chunk.data)[: chunk.size_bytes], written


def _written(content: bytes) -> Sequence[WrittenBatch]:
    return [
        WrittenBatch(len(batch.view), batch.header.last_offset, batch.header.max_timestamp)
        for batch in iter_batches(memoryview(content))
    ]
