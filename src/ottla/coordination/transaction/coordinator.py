"""The transaction coordinator of a node: one method for each request, over the shards that the node leads.

An outcome goes three steps. It is *decided* when the record with PREPARE_COMMIT or PREPARE_ABORT is on disk:
only then the client is answered, and from then on nothing can change it. Then a *marker* is written to every
partition of the transaction. When all of them are on disk the transaction is *completed*, by another record.
Whoever takes over a shard goes on where the records say it was left: a marker that is written twice does no
harm.

As everywhere, an answer waits until all that was written before it is on disk. So nobody sees a transition
that a crash could undo, and none has to be refused because another one is being written.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.coordination.runtime.decision import Decision
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.runtime.shards import Shards
from ottla.coordination.runtime.timers import Timers
from ottla.coordination.transaction.decide import (
    Identity,
    Outcome,
    completed,
    decide_add_partitions,
    decide_end,
    decide_fence,
    decide_init,
    end_needs_producer_id,
    init_needs_producer_id,
    may_go_on,
    verify_partition,
)
from ottla.coordination.transaction.listing import (
    Filters,
    describe_transaction,
    list_transactions,
    refused_description,
)
from ottla.coordination.transaction.settings import TransactionSettings
from ottla.coordination.transaction.state import TransactionShard
from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TWO_PHASE_TIMEOUT_MS,
    Transaction,
    raises_epochs,
    transaction_record,
)
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_transactions import TransactionState
from ottla.wire.messages.list_transactions import ListedTransaction
from ottla.world.clock import Clock

R = TypeVar("R")
Answer = Callable[[R], None]

RETRY_MS = 100
"""How long to wait before a completed transaction is written down again, if the log refused it."""


class Given(NamedTuple):
    """The producer id and epoch that a client gets, or why it gets none."""

    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


class Listing(NamedTuple):
    """The transactions of a node, or why they are not listed."""

    error_code: ErrorCode
    transactions: tuple[ListedTransaction, ...]


class Markers(NamedTuple):
    """The outcome of a transaction, to be written to its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    coordinator_epoch: int
    transaction_version: int


class Surroundings(Protocol):
    """What a coordinator is given by whoever drives it."""

    clock: Clock

    def wake(self, deadline_ms: int) -> None:
        """Have `TransactionCoordinator.fire_timers` called at this monotonic time, or earlier."""

    def new_producer_id(self, take: Callable[[int | ErrorCode], None]) -> None:
        """Get a producer id that nobody had before."""

    def write_markers(self, shard: int, markers: Markers, done: Callable[[], None]) -> None:
        """Write markers to all partitions, as often as it takes, and tell when all of them are on disk.

        Partitions that do not exist any more are left out. If one refuses its marker for good, because
        another coordinator has taken over, nothing is told.
        """

    def transaction_version(self) -> int:
        """Return the finalized level of `transaction.version`."""


class ShardEnvironment:
    """What one shard may ask for. Implements `Environment`."""

    def __init__(self, coordinator: "TransactionCoordinator", partition: int) -> None:
        around = coordinator.surroundings
        self.settings = coordinator.settings
        self.timers = Timers(around.clock, around.wake)
        self._coordinator = coordinator
        self._partition = partition

    def submit(self, decide: Callable[[], Decision[Any]]) -> None:
        """Write what a timer's action decides. What cannot be written now is decided anew some other time."""
        shard = self._coordinator.shards.get(self._partition)
        if shard is not None and shard.refusal is ErrorCode.NONE:
            shard.write(lambda _: decide(), _ignore, _ignore)

    def write_markers(self, transaction: Transaction) -> None:
        """Have a decided outcome written to all partitions, and the transaction completed."""
        shard = self._coordinator.shards.get(self._partition)
        assert shard is not None, "a shard is there while it is activated"
        self._coordinator.write_markers(shard, transaction)

    def abort(self, transaction: Transaction, now_ms: int) -> None:
        """Abort a transaction whose time is over."""
        shard = self._coordinator.shards.get(self._partition)
        if shard is not None:
            self._coordinator.fence(shard, transaction, now_ms, _ignore)

    def wake_waiting(self, transactional_id: str) -> None:
        """Let go on whoever waits for a transaction to be complete."""
        self._coordinator.wake_waiting(transactional_id)


class TransactionCoordinator:
    """The transactional ids whose partitions of `__transaction_state` this node leads."""

    def __init__(self, settings: TransactionSettings, surroundings: Surroundings) -> None:
        self.settings = settings
        self.surroundings = surroundings
        self.shards: Shards[TransactionShard] = Shards(
            lambda partition: TransactionShard(ShardEnvironment(self, partition))
        )
        # Writes that came before the transaction before theirs was complete.
        self._waiting: dict[str, list[_Waiting]] = {}
        self._waiting_timers = Timers(surroundings.clock, surroundings.wake)
        self._waiting_count = 0

    # Time

    def fire_timers(self) -> int | None:
        """Do what is due. Return the monotonic time of the next deadline."""
        deadlines = []
        for timers in (self._waiting_timers, *(shard.state.env.timers for shard in self.shards)):
            timers.fire()
            deadline_ms = timers.next_deadline_ms()
            if deadline_ms is not None:
                deadlines.append(deadline_ms)
        return min(deadlines, default=None)

    # InitProducerId

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Identity | None,
        answer: Answer[Given],
        enable_two_phase_commit: bool = False,
        keep_prepared: bool = False,
    ) -> None:
        """Give a transactional id to an instance of its producer, and fence all others."""
        error_code = self._check_init(transactional_id, timeout_ms, enable_two_phase_commit, keep_prepared)
        shard = self.shards.find(transactional_id)
        if error_code is not ErrorCode.NONE:
            answer(Given(error_code))
            return
        if not isinstance(shard, Shard):
            answer(Given(shard))
            return
        if enable_two_phase_commit:
            timeout_ms = TWO_PHASE_TIMEOUT_MS
        transaction = shard.state.find(transactional_id)
        if transaction is not None and transaction.status is TransactionStatus.ONGOING:
            self._fence_for(shard, transaction, expected, answer)
            return

        def decide(new_producer_id: int | None) -> None:
            self._init(transactional_id, timeout_ms, expected, new_producer_id, answer)

        if init_needs_producer_id(transaction, expected):
            self._with_producer_id(decide, lambda code: answer(Given(code)))
        else:
            decide(None)

    def _check_init(
        self, transactional_id: str, timeout_ms: int, enable_two_phase_commit: bool, keep_prepared: bool
    ) -> ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if enable_two_phase_commit and not self.settings.is_two_phase_commit_enabled:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if keep_prepared:
            return ErrorCode.UNSUPPORTED_VERSION
        if not enable_two_phase_commit and not 0 < timeout_ms <= self.settings.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return ErrorCode.NONE

    def _init(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Identity | None,
        new_producer_id: int | None,
        answer: Answer[Given],
    ) -> None:
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            answer(Given(shard))
            return
        now_ms = self.surroundings.clock.now_ms()

        def decide(state: TransactionShard) -> Decision[Given]:
            outcome = decide_init(
                state.find(transactional_id), transactional_id, timeout_ms, expected, new_producer_id, now_ms
            )
            after = outcome.after
            if after is None:
                return Decision(reply=Given(outcome.error_code))

            return Decision(
                (self._record(after),),
                Given(ErrorCode.NONE, after.producer_id, after.producer_epoch),
                after_replay=lambda: state.note_raised(
                    transactional_id, after.producer_epoch, outcome.raised_from
                ),
            )

        shard.write(decide, answer, lambda code: answer(Given(code)))

    def _fence_for(
        self,
        shard: Shard[TransactionShard],
        transaction: Transaction,
        expected: Identity | None,
        answer: Answer[Given],
    ) -> None:
        """Abort what another instance has open. Whoever asked has to come again when that is done."""
        now_ms = self.surroundings.clock.now_ms()
        if expected is not None and not may_go_on(transaction, expected):
            answer(Given(ErrorCode.PRODUCER_FENCED))
            return

        def fenced(code: ErrorCode) -> None:
            answer(Given(ErrorCode.CONCURRENT_TRANSACTIONS if code is ErrorCode.NONE else code))

        self.fence(shard, transaction, now_ms, fenced)

    def fence(
        self,
        shard: Shard[TransactionShard],
        transaction: Transaction,
        now_ms: int,
        answer: Answer[ErrorCode],
    ) -> None:
        """Abort an open transaction and keep its producer from going on."""
        version = self.surroundings.transaction_version()
        name = transaction.transactional_id

        def decide(new_producer_id: int | None) -> None:
            if shard.refusal is not ErrorCode.NONE:
                answer(shard.refusal)
                return
            current = shard.state.find(name)
            if current is None or (current.producer_id, current.producer_epoch) != (
                transaction.producer_id,
                transaction.producer_epoch,
            ):
                answer(ErrorCode.CONCURRENT_TRANSACTIONS)
                return
            outcome = decide_fence(current, version, new_producer_id, now_ms)
            self._decide_outcome(shard, outcome, answer)

        if end_needs_producer_id(transaction, version):
            self._with_producer_id(decide, answer)
        else:
            decide(None)

    # Partitions

    def add_partitions(
        self,
        transactional_id: str,
        who: Identity,
        partitions: frozenset[TopicPartition],
        client_version: int,
        answer: Answer[ErrorCode],
        waits: bool = False,
    ) -> None:
        """Make partitions part of a transaction.

        Who `waits` is kept for a while if the transaction before is not complete yet. Clients of version 2
        hardly notice then that it takes a moment.
        """
        if not transactional_id:
            answer(ErrorCode.INVALID_REQUEST)
            return
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            answer(shard)
            return
        if waits:
            transaction = shard.state.find(transactional_id)
            if transaction is not None and transaction.status.is_ending:
                self._wait(
                    transactional_id,
                    lambda: self.add_partitions(transactional_id, who, partitions, client_version, answer),
                )
                return
        now_ms = self.surroundings.clock.now_ms()

        def decide(state: TransactionShard) -> Decision[ErrorCode]:
            outcome = decide_add_partitions(
                state.find(transactional_id), who, partitions, client_version, now_ms
            )
            if outcome.after is None:
                return Decision(reply=outcome.error_code)
            return Decision((self._record(outcome.after),), ErrorCode.NONE)

        shard.write(decide, answer, answer)

    def verify_partitions(
        self,
        transactional_id: str,
        who: Identity,
        partitions: frozenset[TopicPartition],
        answer: Answer[dict[TopicPartition, ErrorCode]],
    ) -> None:
        """Say for each partition whether it is part of the transaction that a producer has open."""

        def all_of(code: ErrorCode) -> dict[TopicPartition, ErrorCode]:
            return dict.fromkeys(partitions, code)

        if not transactional_id:
            answer(all_of(ErrorCode.INVALID_REQUEST))
            return
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            answer(all_of(shard))
            return
        shard.read(
            lambda state: {
                partition: verify_partition(state.find(transactional_id), who, partition)
                for partition in partitions
            },
            answer,
            lambda code: answer(all_of(code)),
        )

    # The end

    def end(
        self,
        transactional_id: str,
        who: Identity,
        committed: bool,
        client_version: int,
        answer: Answer[Given],
    ) -> None:
        """Decide how a transaction ends. Answered when that cannot change any more."""
        if not transactional_id:
            answer(Given(ErrorCode.INVALID_REQUEST))
            return
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            answer(Given(shard))
            return

        def decide(new_producer_id: int | None) -> None:
            self._end(transactional_id, who, committed, client_version, new_producer_id, answer)

        if end_needs_producer_id(shard.state.find(transactional_id), client_version):
            self._with_producer_id(decide, lambda code: answer(Given(code)))
        else:
            decide(None)

    def _end(
        self,
        transactional_id: str,
        who: Identity,
        committed: bool,
        client_version: int,
        new_producer_id: int | None,
        answer: Answer[Given],
    ) -> None:
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            answer(Given(shard))
            return
        now_ms = self.surroundings.clock.now_ms()
        before = shard.state.find(transactional_id)
        outcome = decide_end(before, who, committed, client_version, new_producer_id, now_ms)
        raises = raises_epochs(client_version)
        if outcome.after is None:
            given = Given(outcome.error_code)
            if outcome.error_code is ErrorCode.NONE and raises and before is not None:
                # A retry: it gets what was lost.
                given = Given(ErrorCode.NONE, before.producer_id, before.producer_epoch)
            shard.read(lambda _: given, answer, lambda code: answer(Given(code)))
            return
        # What the producer goes on with is what it will be once the transaction is complete.
        next_one = completed(outcome.after, now_ms)

        def decided(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and raises:
                answer(Given(code, next_one.producer_id, next_one.producer_epoch))
            else:
                answer(Given(code))

        self._decide_outcome(shard, outcome, decided)

    def _decide_outcome(
        self, shard: Shard[TransactionShard], outcome: Outcome, answer: Answer[ErrorCode]
    ) -> None:
        """Write an outcome down. When that is on disk, answer, and begin to write markers."""
        after = outcome.after
        if after is None:
            answer(outcome.error_code)
            return

        def decided(code: ErrorCode) -> None:
            answer(code)
            if code is ErrorCode.NONE and shard.refusal is ErrorCode.NONE:
                current = shard.state.find(after.transactional_id)
                assert current is not None, "nothing can take it away before it is complete"
                self.write_markers(shard, current)

        decision: Decision[None] = Decision((self._record(after),), on_commit=decided)
        shard.write(lambda _: decision, _ignore, _ignore)

    def write_markers(self, shard: Shard[TransactionShard], transaction: Transaction) -> None:
        """Write a decided outcome to all partitions, then complete the transaction."""
        markers = Markers(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.is_commit,
            transaction.partitions,
            shard.epoch,
            transaction.client_version,
        )
        self.surroundings.write_markers(shard.partition, markers, lambda: self._complete(shard, transaction))

    def _complete(self, shard: Shard[TransactionShard], transaction: Transaction) -> None:
        name = transaction.transactional_id
        if shard.refusal is not ErrorCode.NONE or shard.state.find(name) is not transaction:
            # Another node goes on with it.
            return
        now_ms = self.surroundings.clock.now_ms()
        after = completed(transaction, now_ms)

        def retry(_: ErrorCode) -> None:
            shard.state.env.timers.schedule(
                ("complete", name), RETRY_MS, lambda _now_ms: self._complete(shard, transaction)
            )

        decision: Decision[ErrorCode] = Decision((self._record(after),), ErrorCode.NONE)
        shard.write(lambda _: decision, _ignore, retry)
        if shard.state.find(name) is not transaction:
            self.wake_waiting(name)

    # Looking

    def describe(self, transactional_id: str, answer: Answer[TransactionState]) -> None:
        """Describe a transactional id."""

        def refuse(code: ErrorCode) -> None:
            answer(refused_description(transactional_id, code))

        if not transactional_id:
            refuse(ErrorCode.INVALID_REQUEST)
            return
        shard = self.shards.find(transactional_id)
        if isinstance(shard, Shard):
            shard.read(
                lambda state: describe_transaction(transactional_id, state.find(transactional_id)),
                answer,
                refuse,
            )
        else:
            refuse(shard)

    def list(self, filters: Filters, answer: Answer[Listing]) -> None:
        """List the transactions of this node; an error if some of them are being loaded."""
        now_ms = self.surroundings.clock.now_ms()
        shards = [shard for shard in self.shards if shard.refusal is not ErrorCode.NOT_COORDINATOR]
        if any(shard.refusal is not ErrorCode.NONE for shard in shards):
            answer(Listing(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ()))
            return
        listed: list[ListedTransaction] = []
        missing = len(shards) + 1

        def add(some: "list[ListedTransaction]") -> None:
            nonlocal missing
            listed.extend(some)
            missing -= 1
            if missing == 0:
                answer(Listing(ErrorCode.NONE, tuple(listed)))

        for shard in shards:
            shard.read(
                lambda state: list_transactions(state.transactions.values(), filters, now_ms),
                add,
                # One that resigns meanwhile has none any more: another node lists them.
                lambda _code: add([]),
            )
        add([])

    # Waiting

    def _wait(self, transactional_id: str, go_on: Callable[[], None]) -> None:
        self._waiting_count += 1
        waiting = _Waiting(self._waiting_count, go_on)
        self._waiting.setdefault(transactional_id, []).append(waiting)

        def give_up(_now_ms: int) -> None:
            others = [one for one in self._waiting.pop(transactional_id, []) if one is not waiting]
            if others:
                self._waiting[transactional_id] = others
            go_on()

        self._waiting_timers.schedule(waiting.number, self.settings.retry_ms_max, give_up)

    def wake_waiting(self, transactional_id: str) -> None:
        """Let go on whoever waits for a transaction to be complete."""
        for waiting in self._waiting.pop(transactional_id, ()):
            self._waiting_timers.cancel(waiting.number)
            waiting.go_on()

    # What all have in common

    def _record(self, transaction: Transaction) -> Any:
        return transaction_record(transaction, self.surroundings.transaction_version())

    def _with_producer_id(
        self, use: Callable[[int | None], None], refuse: Callable[[ErrorCode], None]
    ) -> None:
        def take(producer_id: int | ErrorCode) -> None:
            if isinstance(producer_id, ErrorCode):
                refuse(producer_id)
            else:
                use(producer_id)

        self.surroundings.new_producer_id(take)


class _Waiting(NamedTuple):
    """A write that waits for the transaction before its own."""

    number: int
    go_on: Callable[[], None]


def _ignore(_: object) -> None:
    """Nobody waits for this."""
