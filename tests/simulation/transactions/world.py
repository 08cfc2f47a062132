"""A node with a transaction coordinator, its log and some partitions, and clients that are in no way careful.

One seed drives everything: how long messages and syncs take, what is lost, what comes twice or very late, and
when the power goes. A power cut takes what was not synced, of every log on its own, and everything in memory.
Partitions are kept as lists, but what they accept is decided by the storage's own rules (`ProducerState`).
"""

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.coordination.runtime.decision import ProducerIdentity, Records
from ottla.coordination.runtime.shard import LoggedBatch, ShardStatus
from ottla.coordination.transaction.coordinator import TransactionCoordinator
from ottla.coordination.transaction.decide import Identity
from ottla.coordination.transaction.environment import Markers
from ottla.coordination.transaction.settings import TransactionSettings
from ottla.coordination.transaction.transaction import Transaction
from ottla.model.ids import Offset, ProducerId, TopicPartition
from ottla.storage.errors import AppendError
from ottla.storage.producers.producer_state import ProducerState
from ottla.wire.coordinator_records.framing import TRANSACTION_RECORDS
from ottla.wire.error_code import ErrorCode
from ottla.world.clock import Clock

SETTINGS = TransactionSettings(abort_interval_ms=500, expiry_interval_ms=10**9, retry_ms_max=50)
PARTITIONS = [TopicPartition("t", number) for number in range(4)]


class Entry(NamedTuple):
    """What is at an offset of a partition: a record of a transaction, or a marker."""

    producer_id: int
    producer_epoch: int
    label: int | None
    is_commit: bool | None = None
    coordinator_epoch: int = -1


@dataclass
class PartitionLog:
    """A partition: what it has, and what of it survives a power cut."""

    entries: list[Entry] = field(default_factory=list)
    synced: int = 0
    producers: ProducerState = field(default_factory=ProducerState)
    verifications: dict[int, object] = field(default_factory=dict)

    def append(self, entry: Entry, transaction_version: int = 2) -> None:
        """Append, or raise `AppendError`."""
        producer_id = ProducerId(entry.producer_id)
        if entry.is_commit is None:
            self.producers.check_internal_batch(producer_id, entry.producer_epoch, is_transactional=True)
        else:
            self.producers.check_marker(
                producer_id, entry.producer_epoch, entry.coordinator_epoch, transaction_version
            )
        self.entries.append(entry)
        self.note(entry, len(self.entries) - 1)
        self.verifications.pop(entry.producer_id, None)

    def note(self, entry: Entry, offset: int) -> None:
        producer_id = ProducerId(entry.producer_id)
        if entry.is_commit is None:
            at = Offset(offset)
            self.producers.note_batch(producer_id, entry.producer_epoch, 0, at, at, 0, True)
        else:
            self.producers.note_marker(
                producer_id, entry.producer_epoch, entry.coordinator_epoch, Offset(offset), 0,
                not entry.is_commit,
            )  # fmt: skip

    def cut(self, rng: random.Random) -> None:
        """Lose what the disk had not yet, or some of it."""
        del self.entries[rng.randint(self.synced, len(self.entries)) :]
        self.synced = len(self.entries)
        self.producers = ProducerState()
        self.verifications.clear()
        for offset, entry in enumerate(self.entries):
            self.note(entry, offset)


class SimulatedShardLog:
    """The coordinator's log. Records go through their bytes, as they do in a real one."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.batches_written: list[tuple[tuple[bytes, bytes | None], ...]] = []
        self.synced = 0
        self.shard: Any = None

    def append(self, records: Records, _producer: ProducerIdentity | None, _is_atomic: bool) -> int:
        kinds = TRANSACTION_RECORDS
        self.batches_written.append(
            tuple(
                (
                    kinds.encode_key(record.key),
                    None if record.value is None else kinds.encode_value(record.value, record.value_version),
                )
                for record in records
            )
        )
        end, shard = len(self.batches_written), self.shard
        self._world.sync(lambda: self._synced(end, shard))
        return end - 1

    def write_out(self) -> None:
        """Nothing is held back."""

    def _synced(self, end: int, shard: Any) -> None:
        self.synced = max(self.synced, end)
        if shard is self.shard and shard.status is ShardStatus.ACTIVE:
            shard.commit_up_to(end - 1)

    def leave_out(self, error: Exception) -> None:
        raise AssertionError("all that is in memory can be replayed") from error

    def batches(self) -> Iterator[LoggedBatch]:
        for offset, batch in enumerate(self.batches_written):
            records = [TRANSACTION_RECORDS.decode(key, value) for key, value in batch]
            yield LoggedBatch(offset, records)  # type: ignore[arg-type]

    def cut(self, rng: random.Random) -> None:
        del self.batches_written[rng.randint(self.synced, len(self.batches_written)) :]
        self.synced = len(self.batches_written)


class World:
    """Everything. Implements `TransactionHost` and its clock."""

    coordinator_class = TransactionCoordinator

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock: Clock = self
        self._now_ms = 1_000_000
        self._events: list[tuple[int, int, int, Callable[[], None]]] = []
        self._sequence = 0
        self.life = 0
        self.log = SimulatedShardLog(self)
        self.partitions = {where: PartitionLog() for where in PARTITIONS}
        self.coordinator: TransactionCoordinator | None = None
        self._producer_ids = iter(range(100, 1_000_000))
        self.acknowledged: dict[int, bool] = {}
        self.acknowledged_writes: dict[int, set[TopicPartition]] = {}
        self._labels = iter(range(1_000_000))

    # Time

    def now_ms(self) -> int:
        return self._now_ms

    monotonic_ms = now_ms

    def monotonic_ns(self) -> int:
        """Return it in nanoseconds."""
        return 1_000_000 * self._now_ms

    def after(self, delay_ms: int, action: Callable[[], None], survives: bool = False) -> None:
        """Do something later. A power cut takes it, unless it `survives`: then it is not the node's."""
        self._sequence += 1
        life = -1 if survives else self.life
        heapq.heappush(self._events, (self._now_ms + delay_ms, self._sequence, life, action))

    def run(self, until_ms: int) -> None:
        while self._events and self._events[0][0] <= until_ms:
            self._now_ms, _, life, action = heapq.heappop(self._events)
            if life in (-1, self.life):
                action()
        self._now_ms = until_ms

    def sync(self, done: Callable[[], None]) -> None:
        self.after(self.rng.choice((1, 1, 2, 5, 40)), done)

    # The node

    def start(self) -> None:
        self.life += 1
        self.coordinator = self.coordinator_class(SETTINGS, self)
        self.coordinator.shards.partition_count = 1
        shard = self.coordinator.shards.elect(0, self.life, self.log)
        assert shard is not None
        self.log.shard = shard
        for _ in shard.load():
            pass
        shard.activate(self._now_ms)

    def crash(self) -> None:
        """Cut the power, and start again after a while."""
        self.life += 1
        self.coordinator = None
        self.log.cut(self.rng)
        for partition in self.partitions.values():
            partition.cut(self.rng)
        self.after(self.rng.randrange(1, 200), self.start, survives=True)

    def transaction_expired(self, transaction: Transaction) -> None:
        """Nobody keeps a journal."""

    def wake(self, deadline_ms: int) -> None:
        self.after(max(0, deadline_ms - self._now_ms), self._fire)

    def _fire(self) -> None:
        if self.coordinator is not None:
            deadline_ms = self.coordinator.fire_timers()
            if deadline_ms is not None:
                self.wake(deadline_ms)

    def new_producer_id(self, take: Callable[[int | ErrorCode], None]) -> None:
        number = next(self._producer_ids)
        self.after(self.rng.randrange(3), lambda: take(number))

    def transaction_version(self) -> int:
        return 2

    def write_markers(self, _shard: int, markers: Markers, done: Callable[[], None]) -> None:
        """Write markers, each when its time comes. The decision is to be on disk."""
        missing = len(markers.partitions)
        if not missing:
            done()

        def write(where: TopicPartition) -> None:
            log = self.partitions[where]
            entry = Entry(
                markers.producer_id, markers.producer_epoch, None, markers.is_commit,
                markers.coordinator_epoch,
            )  # fmt: skip
            log.append(entry, markers.transaction_version)
            end = len(log.entries)
            self.sync(lambda: synced(log, end))

        def synced(log: PartitionLog, end: int) -> None:
            nonlocal missing
            log.synced = max(log.synced, end)
            missing -= 1
            if missing == 0:
                done()

        for where in markers.partitions:
            self.after(self.rng.choice((0, 1, 3, 30)), lambda where=where: write(where))  # type: ignore[misc]

    # Requests, as clients send them

    def write(
        self,
        where: TopicPartition,
        transactional_id: str,
        who: Identity,
        label: int,
        version: int,
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Write a record to a partition, in a transaction."""
        assert self.coordinator is not None
        log = self.partitions[where]
        known = log.producers.producers.get(ProducerId(who.producer_id))
        if known is not None and known.has_open_transaction and known.epoch == who.producer_epoch:
            self._append(log, who, label, answer)
            return
        proof = log.verifications.setdefault(who.producer_id, object())

        def confirmed(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                answer(code)
            elif log.verifications.get(who.producer_id) is not proof:
                answer(ErrorCode.INVALID_TXN_STATE)
            else:
                self._append(log, who, label, answer)

        if version == 2:
            self.coordinator.add_partitions(
                transactional_id, who, frozenset((where,)), 2, confirmed, waits=True
            )
        else:
            self.coordinator.verify_partitions(
                transactional_id, who, frozenset((where,)), lambda codes: confirmed(codes[where])
            )

    def _append(
        self, log: PartitionLog, who: Identity, label: int, answer: Callable[[ErrorCode], None]
    ) -> None:
        try:
            log.append(Entry(who.producer_id, who.producer_epoch, label))
        except AppendError as error:
            answer(error.error_code)
            return
        end = len(log.entries)

        def synced() -> None:
            log.synced = max(log.synced, end)
            answer(ErrorCode.NONE)

        self.sync(synced)

    def new_label(self) -> int:
        return next(self._labels)

    # What must hold

    def outcomes(self) -> dict[int, dict[TopicPartition, set[bool | None]]]:
        """Return for each transaction, by partition, how it ended there; None is: not at all."""
        found: dict[int, dict[TopicPartition, set[bool | None]]] = {}
        for where, log in self.partitions.items():
            open_labels: dict[int, set[int]] = {}
            for entry in log.entries:
                if entry.label is not None:
                    open_labels.setdefault(entry.producer_id, set()).add(entry.label)
                    continue
                for label in open_labels.pop(entry.producer_id, ()):
                    found.setdefault(label, {}).setdefault(where, set()).add(entry.is_commit)
            for labels in open_labels.values():
                for label in labels:
                    found.setdefault(label, {}).setdefault(where, set()).add(None)
        return found

    def check(self) -> list[str]:
        """Return what is wrong, once everything has come to rest."""
        wrong = []
        outcomes = self.outcomes()
        for label, by_partition in outcomes.items():
            ends = set().union(*by_partition.values())
            if None in ends:
                wrong.append(f"transaction {label} hangs: {by_partition}")
            elif len(ends) > 1:
                wrong.append(f"transaction {label} ended both ways: {by_partition}")
            elif label in self.acknowledged and ends != {self.acknowledged[label]}:
                wrong.append(f"transaction {label} was acknowledged otherwise: {by_partition}")
        for label, committed in self.acknowledged.items():
            missing = self.acknowledged_writes.get(label, set()) - set(outcomes.get(label, {}))
            if committed and missing:
                wrong.append(f"transaction {label} lost its records of {missing}")
        return wrong
