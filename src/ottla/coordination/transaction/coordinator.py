"""The transaction coordinator of a node: one method for each request, over the shards that the node leads.

What a request does is decided in `decide.py`. How an outcome then gets to all partitions is in `outcomes.py`,
and how writers wait for that in `waiting.py`.

As everywhere, an answer waits until all that was written before it is on disk. So nobody sees a transition
that a crash could undo, and none has to be refused because another one is being written.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.coordination.runtime.decision import Answer, Decision, Refuse, ignore
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.runtime.shards import Shards
from ottla.coordination.runtime.timers import Timers, fire_all
from ottla.coordination.transaction.decide import (
    Identity,
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
from ottla.coordination.transaction.environment import TransactionHost
from ottla.coordination.transaction.listing import (
    Filters,
    describe_transaction,
    list_transactions,
    refused_description,
)
from ottla.coordination.transaction.outcomes import Outcomes
from ottla.coordination.transaction.settings import TransactionSettings
from ottla.coordination.transaction.state import TransactionShard
from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TWO_PHASE_TIMEOUT_MS,
    Transaction,
    raises_epochs,
)
from ottla.coordination.transaction.waiting import WaitingWriters
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_transactions import TransactionState
from ottla.wire.messages.list_transactions import ListedTransaction


class ProducerIdResult(NamedTuple):
    """The producer id and epoch that a client gets, or why it gets none."""

    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


class Listing(NamedTuple):
    """The transactions of a node, or why they are not listed."""

    error_code: ErrorCode
    transactions: tuple[ListedTransaction, ...]


class TransactionShardEnvironment:
    """What one shard may ask for. Implements `TransactionEnvironment`."""

    def __init__(self, coordinator: "TransactionCoordinator", partition: int) -> None:
        self.settings = coordinator.settings
        self.timers = Timers(coordinator.host.clock, coordinator.host.wake)
        self._coordinator = coordinator
        self._partition = partition

    def submit(self, decide: Callable[[], Decision[Any]]) -> None:
        """Write what a timer's action decides, if the shard still serves."""
        self._coordinator.shards.submit(self._partition, decide)

    def resume(self, transaction: Transaction) -> None:
        """Go on with an outcome that was decided before the shard was loaded."""
        shard = self._coordinator.shards.get(self._partition)
        assert shard is not None, "a shard is there while it is activated"
        self._coordinator.outcomes.mark_partitions(shard, transaction)

    def abort(self, transaction: Transaction, now_ms: int) -> None:
        """Abort a transaction whose time is over."""
        shard = self._coordinator.shards.get(self._partition)
        if shard is not None:
            self._coordinator.host.transaction_expired(transaction)
            self._coordinator.fence(shard, transaction, now_ms, ignore)

    def wake_waiting(self, transactional_id: str) -> None:
        """Let the writers go on that wait for a transaction to be complete."""
        self._coordinator.waiting.wake(transactional_id)


class TransactionCoordinator:
    """The transactional ids whose partitions of `__transaction_state` this node leads."""

    def __init__(self, settings: TransactionSettings, host: TransactionHost) -> None:
        self.settings = settings
        self.host = host
        self.shards: Shards[TransactionShard] = Shards(
            lambda partition: TransactionShard(TransactionShardEnvironment(self, partition))
        )
        self.waiting = WaitingWriters(host.clock, host.wake, settings.retry_ms_max)
        self.outcomes = Outcomes(host, self.waiting)

    # Time

    def fire_timers(self) -> int | None:
        """Do what is due. Return the monotonic time of the next deadline."""
        return fire_all([self.waiting.timers, *(shard.state.env.timers for shard in self.shards)])

    # InitProducerId

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Identity | None,
        answer: Answer[ProducerIdResult],
        enable_two_phase_commit: bool = False,
        keep_prepared: bool = False,
    ) -> None:
        """Give a transactional id to an instance of its producer, and fence all others."""
        refuse = _refusing(answer)
        error_code = self._check_init(transactional_id, timeout_ms, enable_two_phase_commit, keep_prepared)
        if error_code is not ErrorCode.NONE:
            refuse(error_code)
            return
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            refuse(shard)
            return
        if enable_two_phase_commit:
            timeout_ms = TWO_PHASE_TIMEOUT_MS
        transaction = shard.state.find(transactional_id)
        if transaction is not None and transaction.status is TransactionStatus.ONGOING:
            self._fence_for(shard, transaction, expected, answer)
            return

        def init(new_producer_id: int | None) -> None:
            self._init(transactional_id, timeout_ms, expected, new_producer_id, answer)

        if init_needs_producer_id(transaction, expected):
            self._with_producer_id(init, refuse)
        else:
            init(None)

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
        answer: Answer[ProducerIdResult],
    ) -> None:
        now_ms = self.host.clock.now_ms()

        def decide(state: TransactionShard) -> Decision[ProducerIdResult]:
            outcome = decide_init(
                state.find(transactional_id), transactional_id, timeout_ms, expected, new_producer_id, now_ms
            )
            after = outcome.after
            if after is None:
                return Decision(reply=ProducerIdResult(outcome.error_code))
            return Decision(
                (self.outcomes.record(after),),
                ProducerIdResult(ErrorCode.NONE, after.producer_id, after.producer_epoch),
                lambda: state.note_raised(transactional_id, after.producer_epoch, outcome.raised_from),
            )

        self.shards.write(transactional_id, decide, answer, _refusing(answer))

    def _fence_for(
        self,
        shard: Shard[TransactionShard],
        transaction: Transaction,
        expected: Identity | None,
        answer: Answer[ProducerIdResult],
    ) -> None:
        """Abort what another instance has open. The client has to ask again when that is done."""
        if expected is not None and not may_go_on(transaction, expected):
            answer(ProducerIdResult(ErrorCode.PRODUCER_FENCED))
            return

        def fenced(code: ErrorCode) -> None:
            answer(ProducerIdResult(ErrorCode.CONCURRENT_TRANSACTIONS if code is ErrorCode.NONE else code))

        self.fence(shard, transaction, self.host.clock.now_ms(), fenced)

    def fence(
        self,
        shard: Shard[TransactionShard],
        transaction: Transaction,
        now_ms: int,
        answer: Answer[ErrorCode],
    ) -> None:
        """Abort an open transaction and keep its producer from going on."""
        version = self.host.transaction_version()
        identity = transaction.producer_id, transaction.producer_epoch

        def fence(new_producer_id: int | None) -> None:
            def decide(state: TransactionShard) -> tuple[Transaction | None, ErrorCode]:
                current = state.find(transaction.transactional_id)
                if current is None or (current.producer_id, current.producer_epoch) != identity:
                    return None, ErrorCode.CONCURRENT_TRANSACTIONS
                outcome = decide_fence(current, version, new_producer_id, now_ms)
                return outcome.after, outcome.error_code

            if shard.refusal is ErrorCode.NONE:
                self.outcomes.decide(shard, decide, answer, answer)
            else:
                answer(shard.refusal)

        if end_needs_producer_id(transaction, version):
            self._with_producer_id(fence, answer)
        else:
            fence(None)

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

        A client that `waits` is kept for a while if the transaction before is not complete yet. Clients of
        version 2 hardly notice then that it takes a moment.
        """
        if not transactional_id:
            answer(ErrorCode.INVALID_REQUEST)
            return
        if waits and self._is_ending(transactional_id):
            self.waiting.add(
                transactional_id,
                lambda: self.add_partitions(transactional_id, who, partitions, client_version, answer),
            )
            return
        now_ms = self.host.clock.now_ms()

        def decide(state: TransactionShard) -> Decision[ErrorCode]:
            outcome = decide_add_partitions(
                state.find(transactional_id), who, partitions, client_version, now_ms
            )
            if outcome.after is None:
                return Decision(reply=outcome.error_code)
            return Decision((self.outcomes.record(outcome.after),), ErrorCode.NONE)

        self.shards.write(transactional_id, decide, answer, answer)

    def _is_ending(self, transactional_id: str) -> bool:
        shard = self.shards.find(transactional_id)
        transaction = shard.state.find(transactional_id) if isinstance(shard, Shard) else None
        return transaction is not None and transaction.status.is_ending

    def verify_partitions(
        self,
        transactional_id: str,
        who: Identity,
        partitions: frozenset[TopicPartition],
        answer: Answer[dict[TopicPartition, ErrorCode]],
    ) -> None:
        """Say for each partition whether it is part of the transaction that a producer has open."""

        def refuse(code: ErrorCode) -> None:
            answer(dict.fromkeys(partitions, code))

        if not transactional_id:
            refuse(ErrorCode.INVALID_REQUEST)
            return
        self.shards.read(
            transactional_id,
            lambda state: {
                partition: verify_partition(state.find(transactional_id), who, partition)
                for partition in partitions
            },
            answer,
            refuse,
        )

    # The end

    def end(
        self,
        transactional_id: str,
        who: Identity,
        committed: bool,
        client_version: int,
        answer: Answer[ProducerIdResult],
    ) -> None:
        """Decide how a transaction ends. Answered when that cannot change any more."""
        refuse = _refusing(answer)
        if not transactional_id:
            refuse(ErrorCode.INVALID_REQUEST)
            return
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            refuse(shard)
            return

        def end(new_producer_id: int | None) -> None:
            self._end(transactional_id, who, committed, client_version, new_producer_id, answer)

        if end_needs_producer_id(shard.state.find(transactional_id), client_version):
            self._with_producer_id(end, refuse)
        else:
            end(None)

    def _end(
        self,
        transactional_id: str,
        who: Identity,
        committed: bool,
        client_version: int,
        new_producer_id: int | None,
        answer: Answer[ProducerIdResult],
    ) -> None:
        shard = self.shards.find(transactional_id)
        if not isinstance(shard, Shard):
            answer(ProducerIdResult(shard))
            return
        now_ms = self.host.clock.now_ms()
        raises = raises_epochs(client_version)

        def decide(state: TransactionShard) -> tuple[Transaction | None, ProducerIdResult]:
            before = state.find(transactional_id)
            outcome = decide_end(before, who, committed, client_version, new_producer_id, now_ms)
            if outcome.error_code is not ErrorCode.NONE or not raises:
                return outcome.after, ProducerIdResult(outcome.error_code)
            # What the producer goes on with is what it will be once the transaction is complete. A retry has
            # nothing left to decide: it gets what was lost.
            goes_on = before if outcome.after is None else completed(outcome.after, now_ms)
            assert goes_on is not None, "an id that is not known is refused"
            return outcome.after, ProducerIdResult(
                ErrorCode.NONE, goes_on.producer_id, goes_on.producer_epoch
            )

        self.outcomes.decide(shard, decide, answer, _refusing(answer))

    # Looking

    def describe(self, transactional_id: str, answer: Answer[TransactionState]) -> None:
        """Describe a transactional id."""

        def refuse(code: ErrorCode) -> None:
            answer(refused_description(transactional_id, code))

        if not transactional_id:
            refuse(ErrorCode.INVALID_REQUEST)
            return
        self.shards.read(
            transactional_id,
            lambda state: describe_transaction(transactional_id, state.find(transactional_id)),
            answer,
            refuse,
        )

    def list(self, filters: Filters, answer: Answer[Listing]) -> None:
        """List the transactions of this node; an error if some of them are being loaded."""
        now_ms = self.host.clock.now_ms()

        def gathered(listed: "list[ListedTransaction] | ErrorCode") -> None:
            if isinstance(listed, ErrorCode):
                answer(Listing(listed, ()))
            else:
                answer(Listing(ErrorCode.NONE, tuple(listed)))

        self.shards.read_all(
            lambda state: list_transactions(state.transactions.values(), filters, now_ms), gathered
        )

    # What all have in common

    def _with_producer_id(self, use: Callable[[int | None], None], refuse: Refuse) -> None:
        def take(producer_id: int | ErrorCode) -> None:
            if isinstance(producer_id, ErrorCode):
                refuse(producer_id)
            else:
                use(producer_id)

        self.host.new_producer_id(take)


def _refusing(answer: Answer[ProducerIdResult]) -> Refuse:
    return lambda code: answer(ProducerIdResult(code))
