"""What a log should be, said as simply as possible: a list of batches, and everything else replayed from it.

Nothing is indexed, cached or kept up to date. Each answer walks the batches from the first one ever appended
(a truncation removes them from the end). So the model is slow, obvious, and shares no code with the engine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.simulation.storage.batches import Batch, read_records

WINDOW_BATCHES: Final = 5


class WindowBatch(NamedTuple):
    """A batch in a producer's window of duplicates."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


@dataclass
class Producer:
    """The state of one producer, as of all batches replayed so far."""

    epoch: int = -1
    window: list[WindowBatch] = field(default_factory=list)
    timestamp_ms: int = -1
    coordinator_epoch: int = -1
    transaction_first_offset: int | None = None
    last_seen_offset: int = -1

    @property
    def last_sequence(self) -> int:
        return self.window[-1].last_sequence if self.window else -1

    @property
    def next_sequence(self) -> int:
        return 0 if not self.window else (self.last_sequence + 1) % (1 << 31)


class Transaction(NamedTuple):
    """A transaction that was ended. `last_offset` is the one of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    is_aborted: bool


class Replay:
    """Everything that follows from batches, replayed one by one."""

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        self.producers: dict[int, Producer] = {}
        self.ended: list[Transaction] = []
        self.epochs: list[tuple[int, int]] = []
        self.end_offset = 0
        for batch in batches:
            self.replay(batch)

    def replay(self, batch: Batch) -> None:
        self.end_offset = batch.last_offset + 1
        if batch.leader_epoch >= 0 and (not self.epochs or self.epochs[-1][0] < batch.leader_epoch):
            self.epochs.append((batch.leader_epoch, batch.base_offset))
        if batch.producer_id < 0:
            return
        producer = self.producers.setdefault(batch.producer_id, Producer())
        if producer.epoch != batch.producer_epoch:
            producer.epoch = batch.producer_epoch
            producer.window = []
        producer.timestamp_ms = batch.max_timestamp
        producer.last_seen_offset = batch.last_offset
        if batch.is_control:
            if batch.count:
                self._replay_marker(producer, batch)
            return
        producer.window.append(
            WindowBatch(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset)
        )
        del producer.window[:-WINDOW_BATCHES]
        if batch.is_transactional and producer.transaction_first_offset is None:
            producer.transaction_first_offset = batch.base_offset

    def _replay_marker(self, producer: Producer, batch: Batch) -> None:
        producer.coordinator_epoch = batch.coordinator_epoch
        first = producer.transaction_first_offset
        producer.transaction_first_offset = None
        if first is None:
            return
        still_open = self.first_open_offset()
        stable = batch.last_offset + 1 if still_open is None else still_open
        self.ended.append(Transaction(batch.producer_id, first, batch.last_offset, stable, batch.is_abort))

    def first_open_offset(self) -> int | None:
        """Return where the oldest open transaction begins, or None."""
        firsts = [
            producer.transaction_first_offset
            for producer in self.producers.values()
            if producer.transaction_first_offset is not None
        ]
        return min(firsts, default=None)


def last_stable_offset(replay: Replay, high_watermark: int) -> int:
    """Return up to where everything is decided and decided below the high watermark (trap 30)."""
    undecided = [replay.first_open_offset()]
    undecided += [ended.first_offset for ended in replay.ended if ended.last_offset >= high_watermark]
    return min([high_watermark, *[offset for offset in undecided if offset is not None]])


def epochs_from(epochs: Sequence[tuple[int, int]], log_start_offset: int) -> list[tuple[int, int]]:
    """Return the epochs that reach above the log start; the first of them begins there."""
    kept: list[tuple[int, int]] = []
    for index, (epoch, start) in enumerate(epochs):
        following = epochs[index + 1][1] if index + 1 < len(epochs) else None
        if following is None or following > log_start_offset:
            kept.append((epoch, max(start, log_start_offset)))
    return kept


def end_offset_for_epoch(
    epochs: Sequence[tuple[int, int]], epoch: int, log_end_offset: int
) -> tuple[int, int]:
    """Return the largest known epoch up to `epoch` and where it ended, or -1 and -1 (KIP-101)."""
    if epoch < 0 or not epochs or epoch > epochs[-1][0]:
        return (-1, -1)
    if epoch < epochs[0][0]:
        return (epoch, epochs[0][1])
    known, end = -1, log_end_offset
    for index, (candidate, _) in enumerate(epochs):
        if candidate <= epoch:
            known = candidate
            end = epochs[index + 1][1] if index + 1 < len(epochs) else log_end_offset
    return (known, end)


def first_record_at_or_after(
    batches: Iterable[Batch], timestamp_ms: int, start: int
) -> tuple[int, int] | None:
    """Return timestamp and offset of the first record not older than `timestamp_ms`, or None."""
    for batch in batches:
        if batch.max_timestamp < timestamp_ms or batch.last_offset < start:
            continue
        for record in read_records(batch):
            if record.offset >= start and record.timestamp_ms >= timestamp_ms:
                return (record.timestamp_ms, record.offset)
    return None


def latest_values(
    batches: Iterable[Batch], replay: Replay, start: int = 0
) -> dict[bytes, tuple[int, bytes | None]]:
    """Return for each key the newest committed record: its offset and value. Tombstones are values too."""
    aborted = [
        (ended.producer_id, ended.first_offset, ended.last_offset)
        for ended in replay.ended
        if ended.is_aborted
    ]
    latest: dict[bytes, tuple[int, bytes | None]] = {}
    for batch in batches:
        if batch.is_control or batch.last_offset < start:
            continue
        if batch.is_transactional and any(
            producer_id == batch.producer_id and first <= batch.base_offset <= last
            for producer_id, first, last in aborted
        ):
            continue
        for record in read_records(batch):
            if record.key is not None:
                latest[record.key] = (record.offset, record.value)
    return latest
