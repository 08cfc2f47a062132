"""A log for compaction tests: segments written batch by batch, cleaned, and read back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ottla.model.ids import FilePosition, Offset, ProducerId
from ottla.records.batch import BatchHeader, BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.storage.compaction.cleaning import Cleaned, CleanedGroup, CleaningTask, Progress, clean
from ottla.storage.compaction.rules import ActiveProducer
from ottla.storage.compaction.source import SourceSegment
from ottla.storage.config import LogConfig
from ottla.storage.indexes.transaction_index import AbortedTransaction, decode_transaction_index
from ottla.storage.names import FileKind, FileState, segment_file_name
from ottla.testing.simulated_disk import SimulatedDisk

DIRECTORY = "data/orders-0"
NOW_MS = 1_700_000_000_000
DELETE_RETENTION_MS = 1000
MEMORY_BYTES = 1 << 20
CONFIG = LogConfig(is_compacted=True, delete_retention_ms=DELETE_RETENTION_MS)

Pair = tuple[str | None, str | None]


def data_batch(offset: int, pairs: Sequence[Pair], **fields: object) -> bytes:
    """Build a batch of records of the given keys and values, from `offset` on."""
    records = [
        Record(offset + at, NOW_MS + offset + at, _encoded(key), _encoded(value))
        for at, (key, value) in enumerate(pairs)
    ]
    return bytes(build_batch(records, base_offset=offset, leader_epoch=3, **fields))  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, *, is_commit: bool, epoch: int = 0) -> bytes:
    """Build the marker that ends a transaction."""
    return bytes(
        build_end_txn_batch(
            EndTxnMarker(is_commit, coordinator_epoch=0),
            timestamp=NOW_MS + offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_offset=offset,
            leader_epoch=3,
        )
    )


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@dataclass
class LogUnderTest:
    """Segments on a disk in memory, by base offset, and what the log would know about them."""

    segments: dict[int, list[bytes]]
    end_offset: int
    first_dirty_offset: int = 0
    aborted: Sequence[AbortedTransaction] = ()
    active_producers: dict[ProducerId, ActiveProducer] = field(default_factory=dict)
    config: LogConfig = CONFIG
    now_ms: int = NOW_MS
    chunk_bytes: int = 1 << 20
    memory_bytes: int = MEMORY_BYTES
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    outcome: Cleaned | None = None
    groups: list[CleanedGroup] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)

    def task(self) -> CleaningTask:
        self.disk.make_directory(DIRECTORY)
        sources = []
        for base_offset, batches in self.segments.items():
            name = segment_file_name(Offset(base_offset), FileKind.LOG)
            file = self.disk.open(f"{DIRECTORY}/{name}", create=True)
            file.truncate(0)
            if batches:
                file.write(0, batches)
            size_bytes = file.size()
            sources.append(
                SourceSegment(Offset(base_offset), file, size_bytes, 0, 0, False, NOW_MS - 1_000_000)
            )
        return CleaningTask(
            directory=DIRECTORY,
            config=self.config,
            segments=sources,
            aborted=self.aborted,
            active_producers=self.active_producers,
            first_dirty_offset=Offset(self.first_dirty_offset),
            first_dirty_position=FilePosition(0),
            end_offset=Offset(self.end_offset),
            now_ms=self.now_ms,
        )

    def clean(self) -> "LogUnderTest":
        """Run one round and take over its result, without the swap."""
        for step in clean(self.task(), self.disk, self.memory_bytes, self.chunk_bytes):
            match step:
                case Progress():
                    self.progress.append(step)
                case CleanedGroup():
                    self._take_over(step)
                case Cleaned():
                    self.outcome = step
        return self

    def _take_over(self, group: CleanedGroup) -> None:
        self.groups.append(group)
        for offset in group.replaced:
            del self.segments[offset]
        self.segments[group.cleaned.base_offset] = [
            bytes(batch.view) for batch in self.batches_of(group.cleaned.base_offset)
        ]
        self.segments = dict(sorted(self.segments.items()))

    def batches_of(self, base_offset: int) -> list[BatchView]:
        content = self.read(base_offset, FileKind.LOG)
        return list(iter_batches(memoryview(content)))

    def read(self, base_offset: int, kind: FileKind) -> bytes:
        name = segment_file_name(Offset(base_offset), kind, FileState.CLEANED)
        return self.disk.read_file(f"{DIRECTORY}/{name}")

    def retained_aborted(self, base_offset: int) -> list[AbortedTransaction]:
        return decode_transaction_index(
            self.read(base_offset, FileKind.TRANSACTION_INDEX), Offset(base_offset)
        )

    @property
    def bytes(self) -> bytes:
        return b"".join(batch for batches in self.segments.values() for batch in batches)

    @property
    def headers(self) -> list[BatchHeader]:
        return [batch.header for batch in iter_batches(memoryview(self.bytes))]

    @property
    def records(self) -> list[Record]:
        return [
            record
            for batch in iter_batches(memoryview(self.bytes))
            if not batch.is_control
            for record in iter_batch_records(batch)
        ]

    @property
    def survivors(self) -> list[tuple[int, str, str | None]]:
        """Offset, key and value of all records left."""
        return [
            (
                record.offset,
                (record.key or b"").decode(),
                None if record.value is None else record.value.decode(),
            )
            for record in self.records
        ]


def producers(*active: tuple[int, int, Iterable[int]]) -> dict[ProducerId, ActiveProducer]:
    """Give producer id, epoch and the last offsets of its window, of each active producer."""
    return {
        ProducerId(producer_id): ActiveProducer(epoch, frozenset(last_offsets))
        for producer_id, epoch, last_offsets in active
    }


def aborted(producer_id: int, first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(ProducerId(producer_id), Offset(first), Offset(last), Offset(last + 1))
