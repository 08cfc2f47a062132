"""Writing a damaged segment again without the damage, so that everything behind it stays readable.

Sound batches keep their offsets. In the place of what is lost comes a batch that covers its offsets, empty as
compaction leaves them: the log has no gap, does not end earlier than before, and gives no offset twice.
Apache Kafka reads it, and consumers pass over it. The damaged bytes are kept aside (`damage`).

The marker of a transaction may have been among them. Then the transaction would be merged with the next one
of its producer, and records of an aborted one would be shown with those of a committed one. So it is ended
there, by a marker of our own: COMMIT if the files around it prove that it was committed, otherwise ABORT.
One that is known to have gone on is left open.

What was never synced is something else: a power cut may keep a batch and lose the one before it, and a
producer that repeats the lost one would be answered as if it were there. So there the log is cut before the
first bad byte, and all that follows is kept aside.

The new file is written beside the log and swapped in by the next load (`leftovers`), so a crash leaves one or
the other.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ottla.model.ids import Offset, ProducerId, TopicPartition
from ottla.records.batch import HEADER, HEADER_BYTES, MAGIC, BatchHeader
from ottla.records.builder import seal_batch
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.storage.damages.damage import Damage, keep_range
from ottla.storage.damages.examine import DamagedRange, SoundBatch, examine
from ottla.storage.names import FileKind, FileState, segment_file_name
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.producers.replay import replay_batch
from ottla.world.disk import Disk, File

_CHUNK_BYTES: Final = 1 << 20
_NO_SEQUENCE: Final = -1
_MARKER_BYTES: Final = len(
    build_end_txn_batch(EndTxnMarker(True, 0), timestamp=0, producer_id=0, producer_epoch=0)
)

# Makes a batch from a first offset to before a next one, in a leader epoch.
Filler = Callable[[int, int, int], bytearray]

# First offset and producer.
OpenTransaction = tuple[Offset, ProducerId]


class KnownTransactions(NamedTuple):
    """What is known of the transactions of a segment without its batches."""

    # Open where the segment ends, from an intact producer snapshot.
    open_at_end: frozenset[OpenTransaction]
    # Aborted, from its transaction index.
    aborted: frozenset[OpenTransaction]


class DamagedSegment(NamedTuple):
    """A segment to be written again, and what is known of it."""

    partition: TopicPartition
    directory: str
    base_offset: Offset
    file: File
    size: int
    modified_ms: int
    # Where the next segment starts.
    end_offset: Offset | None
    # Everything below was synced.
    synced: Offset
    # The segment has to reach up to here. Where gaps are nothing special, only if its end is damaged.
    filled_to: Offset
    fills_gap: bool
    leader_epoch: int
    known: KnownTransactions | None
    make_filler: Filler


def repair_segment(disk: Disk, segment: DamagedSegment, state: ProducerState) -> list[Damage]:
    """Stage the segment without its damage. `state` are the producers at its base offset, and is used up."""
    return _Repair(disk, segment, state).run()


class _Repair:
    """The repair of one segment."""

    def __init__(self, disk: Disk, segment: DamagedSegment, state: ProducerState) -> None:
        self.disk = disk
        self.segment = segment
        self.state = state
        self.leader_epoch = segment.leader_epoch
        self.timestamp_ms = -1
        self.expected = segment.base_offset
        self.damages: list[Damage] = []
        self.path = f"{segment.directory}/{segment_file_name(segment.base_offset, FileKind.LOG)}"
        self.staged = self.path + FileState.CLEANED.value
        self.output = disk.open(self.staged, create=True)
        self.output.truncate(0)
        self.written_bytes = 0

    def run(self) -> list[Damage]:
        segment = self.segment
        # Sound bytes that are not copied yet.
        start = end = 0
        is_end_damaged = is_cut = False
        gapless_to = segment.filled_to if segment.fills_gap else 0
        parts = examine(
            segment.file, segment.size, segment.base_offset, segment.end_offset, gapless_to=gapless_to
        )
        for part in parts:
            if isinstance(part, SoundBatch):
                if part.position != end:
                    self._copy(start, end)
                    start = part.position
                end = part.end
                self._note(part)
                is_end_damaged = False
                continue
            self._copy(start, end)
            start = end = part.end
            if part.first_offset >= segment.synced:
                self._cut(part, parts)
                is_cut = True
                break
            self._bridge(part)
            is_end_damaged = part.next_offset is None
        self._copy(start, end)
        if not is_cut and not is_end_damaged and segment.fills_gap and self.expected < segment.filled_to:
            self._bridge(DamagedRange(segment.size, segment.size, self.expected, None))
        self._stage()
        return self.damages

    def _note(self, batch: SoundBatch) -> None:
        self.expected = Offset(batch.last_offset + 1)
        header = batch.header
        if header is None:
            return
        self.leader_epoch = max(self.leader_epoch, header.leader_epoch)
        self.timestamp_ms = max(self.timestamp_ms, header.max_timestamp)
        if header.producer_id >= 0:
            content = self.segment.file.read(
                batch.position, batch.size_bytes if header.is_control else HEADER_BYTES
            )
            replay_batch(self.state, header, memoryview(content))

    def _copy(self, start: int, end: int) -> None:
        for position in range(start, end, _CHUNK_BYTES):
            self._write(self.segment.file.read(position, min(_CHUNK_BYTES, end - position)))

    def _write(self, content: bytes | bytearray) -> None:
        self.output.write(self.written_bytes, (content,))
        self.written_bytes += len(content)

    def _keep(self, start: int, end: int) -> str:
        segment = self.segment
        return keep_range(self.disk, segment.directory, segment.base_offset, segment.file, start, end)

    def _cut(self, part: DamagedRange, rest: Iterator[SoundBatch | DamagedRange]) -> None:
        """Leave out everything from a damaged range on, since it was never synced."""
        holds_batches = any(isinstance(later, SoundBatch) for later in rest)
        size = self.segment.size
        self._report(part, size, Offset(part.first_offset), was_synced=False, holds_batches=holds_batches)

    def _bridge(self, part: DamagedRange) -> None:
        """Put batches in the place of a damaged range that cover its offsets and end its transactions."""
        first = Offset(part.first_offset)
        after = max(first, self.segment.filled_to) if part.next_offset is None else Offset(part.next_offset)
        ended = self._find_ended(part, after)
        self._report(part, part.end, after, was_synced=True, aborted=[one for one in ended if not ended[one]])
        marker_offset = after - len(ended)
        if marker_offset > first:
            self._write(self.segment.make_filler(first, marker_offset, self.leader_epoch))
        for producer_id, is_committed in ended.items():
            self._write_marker(producer_id, marker_offset, is_committed=is_committed)
            marker_offset += 1
        self.expected = after

    def _report(
        self,
        part: DamagedRange,
        end: int,
        next_offset: Offset,
        *,
        was_synced: bool,
        holds_batches: bool = False,
        aborted: list[ProducerId] | None = None,
    ) -> None:
        self.damages.append(
            Damage(
                self.segment.partition,
                self.path,
                part.position,
                end - part.position,
                Offset(part.first_offset),
                next_offset,
                self._keep(part.position, end),
                was_synced,
                holds_batches,
                tuple(aborted or ()),
            )
        )

    def _write_marker(self, producer_id: ProducerId, offset: int, *, is_committed: bool) -> None:
        producer = self.state.producers[producer_id]
        marker = build_end_txn_batch(
            EndTxnMarker(is_committed, max(producer.coordinator_epoch, 0)),
            timestamp=max(self.timestamp_ms, 0),
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            base_offset=offset,
            leader_epoch=self.leader_epoch,
        )
        self._write(marker)
        replay_batch(self.state, BatchHeader._make(HEADER.unpack_from(marker)), memoryview(marker))

    def _find_ended(self, part: DamagedRange, after: Offset) -> dict[ProducerId, bool]:
        """Return the producers whose transactions end in a damaged range, and whether by a commit."""
        room = after - part.first_offset
        if room == 0 or not self.state.open_transactions:
            return {}
        candidates = [(first, producer_id) for first, producer_id in self.state.open_transactions.items()]
        header = self._find_header(part, after)
        if header is not None:
            if _is_data(header, part.size_bytes):
                return {}
            named = [one for one in candidates if one[1] == header.producer_id]
            candidates = named or candidates
        known = self.segment.known
        if known is None:
            return {producer_id: False for _, producer_id in candidates[:room]}
        ended = [one for one in candidates if one not in known.open_at_end]
        # At the end of a segment a whole one may be missing, with its transaction index.
        is_within = part.next_offset is not None
        return {one[1]: is_within and one not in known.aborted for one in ended[:room]}

    def _find_header(self, part: DamagedRange, after: Offset) -> BatchHeader | None:
        """Return the header of a damaged range that is one batch, as its neighbours bear out."""
        if part.size_bytes < HEADER_BYTES:
            return None
        header = BatchHeader._make(HEADER.unpack_from(self.segment.file.read(part.position, HEADER_BYTES)))
        is_one = (
            header.magic == MAGIC
            and header.size_bytes == part.size_bytes
            and header.base_offset == part.first_offset
            and header.next_offset == after
        )
        return header if is_one else None

    def _stage(self) -> None:
        """Let the new file take the place of the old one at the next load, whatever happens until then."""
        self.output.sync()
        self.output.close()
        self.disk.set_modified_ms(self.staged, self.segment.modified_ms)
        self.disk.sync_directory(self.segment.directory)
        self.disk.rename(self.staged, self.path + FileState.SWAP.value)
        self.disk.sync_directory(self.segment.directory)


def _is_data(header: BatchHeader, size_bytes: int) -> bool:
    """Say whether a damaged batch cannot have been a marker. Not one field of its header alone may say so."""
    return size_bytes != _MARKER_BYTES or (not header.is_control and header.base_sequence != _NO_SEQUENCE)


def empty_batch(first_offset: int, next_offset: int, leader_epoch: int) -> bytearray:
    """Return a batch without records that covers offsets."""
    delta = next_offset - 1 - first_offset
    return seal_batch(
        BatchHeader(first_offset, 0, leader_epoch, MAGIC, 0, 0, delta, -1, -1, -1, -1, -1, 0), b""
    )
