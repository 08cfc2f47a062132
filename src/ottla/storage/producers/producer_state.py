"""What a log knows of its producers: their last batches, to find duplicates, and their open transactions.

For every producer id the epoch, the last five batches (a client may have five requests on the way), the epoch
of the coordinator that wrote its last marker, and where its open transaction began. For the log as a whole
the transactions that hold back the last stable offset: the open ones, and the ended ones whose marker is not
yet below the high watermark.

The state follows from the batches. `note_batch` and `note_marker` are the only ways it changes, while serving
and while loading alike; what a client may append is decided by the `check_*` functions, which change nothing.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.model.ids import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, Offset, ProducerId
from ottla.storage.appending.verification import Verification, out_of_order
from ottla.storage.errors import AppendError
from ottla.storage.producers.producer_snapshot import ProducerSnapshotEntry
from ottla.wire.error_code import ErrorCode

BATCHES_KEPT: Final = 5
NO_COORDINATOR_EPOCH: Final = -1
_SEQUENCE_MAX: Final = 0x7FFFFFFF
_EPOCH_MAX: Final = 0x7FFF
_UNKNOWN_VERSION: Final = -1

# Last sequence, last offset, last offset delta, max timestamp. A plain tuple: one is made per append.
BatchNote = tuple[int, int, int, int]


class Producer:
    """One producer of a log."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "timestamp_ms", "transaction_first_offset")

    def __init__(self, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.epoch = epoch
        # Newest last. All of the current epoch.
        self.batches: list[BatchNote] = []
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.timestamp_ms = -1
        self.transaction_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][0] if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> Offset:
        return Offset(self.batches[-1][1]) if self.batches else NO_OFFSET

    @property
    def has_open_transaction(self) -> bool:
        return self.transaction_first_offset >= 0

    def is_next(self, epoch: int, base_sequence: int, is_transactional: bool) -> bool:
        """Say whether a batch simply goes on where the last one ended, as nearly all do.

        If not, it may still be acceptable: see `find_duplicate` and `ProducerState.check_batch`.
        """
        batches = self.batches
        return (
            epoch == self.epoch
            and is_transactional == (self.transaction_first_offset >= 0)
            and len(batches) > 0
            and base_sequence == (batches[-1][0] + 1) & _SEQUENCE_MAX
        )

    def add_batch(self, last_sequence: int, last_offset: int, offset_delta: int, timestamp_ms: int) -> None:
        """Take notice of a batch of the current epoch."""
        batches = self.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append((last_sequence, last_offset, offset_delta, timestamp_ms))
        self.timestamp_ms = timestamp_ms

    def find_duplicate(
        self, epoch: int, base_sequence: int, last_sequence: int, is_transactional: bool
    ) -> BatchNote | None:
        """Find the batch that this one repeats, if it is one of the last five.

        Deviation: in Kafka a batch may also repeat one of an earlier transaction. A producer has all answers
        before it ends a transaction, so it has no reason to. But librdkafka drops batches that wait to be
        sent again when it aborts, and gives their sequences to other records. If the dropped ones had been
        written, the others would be acknowledged and lost. Here they are refused as out of order.
        """
        if epoch != self.epoch:
            return None
        for batch in self.batches:
            if batch[0] == last_sequence and _sequence_before(last_sequence, batch[2]) == base_sequence:
                return None if is_transactional and self._has_ended(batch) else batch
        return None

    def _has_ended(self, batch: BatchNote) -> bool:
        """Say whether the transaction of a batch has ended."""
        return not self.has_open_transaction or batch[1] < self.transaction_first_offset


def _sequence_before(sequence: int, distance: int) -> int:
    """Count back. Before 0 comes 2^31 - 1."""
    return (sequence - distance) & _SEQUENCE_MAX


class CompletedTransaction(NamedTuple):
    """A transaction whose marker was met. `last_offset` is the marker's."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    is_aborted: bool
    # Below this everything was decided once the marker was there.
    last_stable_offset: Offset


class ProducerState:
    """All producers of a log."""

    __slots__ = ("_open", "producers", "unreplicated")

    def __init__(self, entries: Iterable[ProducerSnapshotEntry] = ()) -> None:
        self.producers: dict[ProducerId, Producer] = {}
        # First offset to producer id, in the order of first offsets, which is the order of insertion.
        self._open: dict[Offset, ProducerId] = {}
        # First offset to the marker's offset of transactions that ended at or above the high watermark.
        self.unreplicated: dict[Offset, Offset] = {}
        self._load(entries)

    def _load(self, entries: Iterable[ProducerSnapshotEntry]) -> None:
        for entry in entries:
            producer = Producer(entry.producer_epoch)
            if entry.last_offset >= 0:
                producer.batches.append(
                    (entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp_ms)
                )
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.timestamp_ms = entry.timestamp_ms
            producer.transaction_first_offset = entry.transaction_first_offset
            self.producers[entry.producer_id] = producer
        # A snapshot is in the order of a hash map.
        self._open = dict(
            sorted(
                (producer.transaction_first_offset, producer_id)
                for producer_id, producer in self.producers.items()
                if producer.has_open_transaction
            )
        )

    def clear(self) -> None:
        """Forget everything."""
        self.producers.clear()
        self._open.clear()
        self.unreplicated.clear()

    def snapshot(self) -> list[ProducerSnapshotEntry]:
        """Return what is kept over a restart."""
        return [
            ProducerSnapshotEntry(
                producer_id,
                producer.epoch,
                producer.last_sequence,
                producer.last_offset,
                producer.batches[-1][2] if producer.batches else 0,
                producer.timestamp_ms,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
            for producer_id, producer in self.producers.items()
        ]

    # What may be appended.

    def check_batch(
        self,
        producer_id: ProducerId,
        epoch: int,
        base_sequence: int,
        is_transactional: bool,
        verification: Verification | None = None,
    ) -> None:
        """Refuse a client's batch that is not the next one of its producer. Duplicates were found before."""
        producer = self.producers.get(producer_id)
        if producer is not None:
            check_epoch(producer_id, producer, epoch)
        if verification is not None:
            verification.check_sequence(base_sequence, has_batches=bool(producer and producer.batches))
        if producer is None or producer.epoch == NO_PRODUCER_EPOCH:
            # Nothing is known, perhaps because all of it was deleted: any sequence may be next (KIP-360).
            return
        if epoch != producer.epoch:
            if base_sequence != 0:
                raise out_of_order(
                    f"epoch {epoch} of producer {producer_id} must start with sequence 0, not {base_sequence}"
                )
        elif base_sequence != _sequence_before(producer.last_sequence, -1):
            raise out_of_order(
                f"sequence {base_sequence} of producer {producer_id} does not follow {producer.last_sequence}"
            )
        if producer.has_open_transaction and not is_transactional:
            raise _must_be_transactional(producer_id)

    def check_internal_batch(self, producer_id: ProducerId, epoch: int, is_transactional: bool) -> None:
        """Refuse a coordinator's batch of an older epoch. Its sequence is not looked at: it has none."""
        producer = self.producers.get(producer_id)
        if producer is None:
            return
        check_epoch(producer_id, producer, epoch)
        if producer.has_open_transaction and not is_transactional:
            raise _must_be_transactional(producer_id)

    def check_marker(
        self, producer_id: ProducerId, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Refuse a marker of an older epoch, or of a coordinator that is none any more."""
        if transaction_version == _UNKNOWN_VERSION:
            # Nobody can tell which rules hold for it. Apache Kafka fails over it, too.
            raise AppendError(ErrorCode.INVALID_REQUEST, "a marker has to say its transaction version")
        producer = self.producers.get(producer_id)
        if producer is None:
            _check_first_marker(producer_id, epoch, coordinator_epoch)
            return
        check_epoch(producer_id, producer, epoch)
        if (
            transaction_version >= 2
            and epoch == producer.epoch
            and producer.has_open_transaction
            and epoch != _EPOCH_MAX
        ):
            # Since version 2 a marker has the epoch after its transaction's. One that has not is late and
            # would end the next transaction. Without an open one it is a harmless retry, and the last epoch
            # of all has none after it.
            raise AppendError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"marker of producer {producer_id} has epoch {epoch}, which its open transaction has too",
            )
        if coordinator_epoch < producer.coordinator_epoch:
            raise AppendError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker of producer {producer_id} is of coordinator epoch {coordinator_epoch}, "
                f"one of {producer.coordinator_epoch} was here before",
            )

    # How it changes.

    def note_batch(
        self,
        producer_id: ProducerId,
        epoch: int,
        last_sequence: int,
        base_offset: Offset,
        last_offset: Offset,
        timestamp_ms: int,
        is_transactional: bool,
    ) -> None:
        """Take notice of a data batch."""
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(epoch)
        if epoch != producer.epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.add_batch(last_sequence, last_offset, last_offset - base_offset, timestamp_ms)
        if is_transactional and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = base_offset
            self._open[base_offset] = producer_id

    def note_marker(
        self,
        producer_id: ProducerId,
        epoch: int,
        coordinator_epoch: int,
        offset: Offset,
        timestamp_ms: int,
        is_abort: bool,
    ) -> CompletedTransaction | None:
        """Take notice of a marker. Returns the transaction it ended, if one was open."""
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(epoch)
        first_offset = producer.transaction_first_offset
        if epoch != producer.epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.coordinator_epoch = coordinator_epoch
        producer.timestamp_ms = timestamp_ms
        producer.transaction_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        del self._open[first_offset]
        self.unreplicated[first_offset] = offset
        stable = next(iter(self._open), Offset(offset + 1))
        return CompletedTransaction(producer_id, first_offset, offset, is_abort, stable)

    def note_epoch(self, producer_id: ProducerId, epoch: int, timestamp_ms: int) -> None:
        """Take notice of a marker of which only the epoch is left, since all data of its transaction is gone.

        The transaction may be open here, if a snapshot has it.

        Deviation: Kafka keeps such batches in the log, so that an older instance of the producer stays
        fenced, but passes over them when it reads the log again.
        """
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(epoch)
        elif producer.has_open_transaction:
            del self._open[producer.transaction_first_offset]
            producer.transaction_first_offset = NO_OFFSET
        if epoch != producer.epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.timestamp_ms = timestamp_ms

    def note_high_watermark(self, high_watermark: Offset) -> None:
        """Let go of the ended transactions whose marker every replica has."""
        if self.unreplicated:
            self.unreplicated = {
                first: last for first, last in self.unreplicated.items() if last >= high_watermark
            }

    def note_log_start(self, log_start_offset: Offset) -> None:
        """Let go of ended transactions that were deleted. Open ones hold back what is left, and producers
        stay known: a retry of theirs is still a duplicate.
        """
        self.note_high_watermark(log_start_offset)

    def expire(self, now_ms: int, expiration_ms: int) -> list[ProducerId]:
        """Forget producers that were silent for long and have no transaction open. Returns who."""
        gone = [
            producer_id
            for producer_id, producer in self.producers.items()
            if not producer.has_open_transaction and now_ms - producer.timestamp_ms >= expiration_ms
        ]
        for producer_id in gone:
            del self.producers[producer_id]
        return gone

    @property
    def first_unstable_offset(self) -> Offset | None:
        """Where the earliest transaction begins that is open, or ended but not on every replica."""
        first_open = next(iter(self._open), None)
        if not self.unreplicated:
            return first_open
        first_ended = min(self.unreplicated)
        return first_ended if first_open is None else min(first_open, first_ended)

    @property
    def open_transactions(self) -> dict[Offset, ProducerId]:
        """First offset to producer, in the order of first offsets."""
        return self._open


def _check_first_marker(producer_id: ProducerId, epoch: int, coordinator_epoch: int) -> None:
    """Refuse a marker with numbers that no producer and no coordinator has.

    Apache Kafka fails over the epoch -1, which stands for none, without writing the marker.
    """
    if epoch < 0:
        raise AppendError(
            ErrorCode.INVALID_PRODUCER_EPOCH, f"marker of producer {producer_id} has epoch {epoch}"
        )
    if coordinator_epoch < NO_COORDINATOR_EPOCH:
        raise AppendError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"marker of producer {producer_id} is of coordinator epoch {coordinator_epoch}",
        )


def check_epoch(producer_id: ProducerId, producer: Producer, epoch: int) -> None:
    """Refuse what an older instance of a producer still sends."""
    if epoch < producer.epoch:
        raise AppendError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"epoch {epoch} of producer {producer_id} is older than {producer.epoch}, which was here before",
        )


def _must_be_transactional(producer_id: ProducerId) -> AppendError:
    return AppendError(
        ErrorCode.INVALID_TXN_STATE,
        f"producer {producer_id} has a transaction open, so its batch must be transactional",
    )
