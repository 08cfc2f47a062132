"""How an outcome gets from the decision to the end of the transaction, in three steps.

1. It is *decided* when the record with PREPARE_COMMIT or PREPARE_ABORT is on disk. Only then the client is
   answered, and from then on nothing can change it.
2. A *marker* is written to every partition of the transaction.
3. When all markers are on disk the transaction is *completed*, by another record.

A node that takes over a shard goes on where the records say it was left: a marker that is written twice does
no harm.
"""

from collections.abc import Callable
from typing import TypeVar

from ottla.coordination.runtime.decision import Answer, Decision, Refuse, ignore
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.transaction.decide import completed
from ottla.coordination.transaction.environment import Markers, TransactionHost
from ottla.coordination.transaction.state import TransactionShard
from ottla.coordination.transaction.transaction import Transaction, transaction_record
from ottla.coordination.transaction.waiting import WaitingWriters
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

R = TypeVar("R")
DecideOutcome = Callable[[TransactionShard], tuple[Transaction | None, R]]
"""Returns the transaction with its outcome, or None if nothing is decided; and the answer to give."""

RETRY_MS = 100
"""How long to wait before a completed transaction is written down again, if the log refused it."""


class Outcomes:
    """Carries the outcomes of a coordinator's transactions through."""

    def __init__(self, host: TransactionHost, waiting: WaitingWriters) -> None:
        self._host = host
        self._waiting = waiting

    def decide(
        self,
        shard: Shard[TransactionShard],
        decide: DecideOutcome[R],
        answer: Answer[R],
        refuse: Refuse,
    ) -> None:
        """Decide an outcome and write it down. When that is on disk, answer, and mark the partitions."""

        decided: list[str] = []

        def decide_and_record(state: TransactionShard) -> Decision[R]:
            after, reply = decide(state)
            if after is None:
                return Decision(reply=reply)
            name = after.transactional_id
            return Decision((self.record(after),), reply, lambda: decided.append(name))

        def mark() -> None:
            if shard.refusal is ErrorCode.NONE:
                transaction = shard.state.find(decided[0])
                assert transaction is not None, "nothing can take it away before it is complete"
                self.mark_partitions(shard, transaction)

        shard.write(decide_and_record, answer, refuse)
        if decided:
            # Also for a client that has given up waiting for the answer.
            shard.after_commit(mark)

    def mark_partitions(self, shard: Shard[TransactionShard], transaction: Transaction) -> None:
        """Have a decided outcome written to all partitions, then complete the transaction."""
        markers = Markers(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.is_commit,
            transaction.partitions,
            shard.epoch,
            transaction.client_version,
        )
        self._host.write_markers(shard.partition, markers, lambda: self.complete(shard, transaction))

    def complete(self, shard: Shard[TransactionShard], transaction: Transaction) -> None:
        """Write down that all markers of a transaction are on disk."""
        name = transaction.transactional_id
        if shard.refusal is not ErrorCode.NONE or shard.state.find(name) is not transaction:
            # Another node goes on with it.
            return
        now_ms = self._host.clock.now_ms()

        def decide(_: TransactionShard) -> Decision[None]:
            record = self.record(completed(transaction, now_ms))
            return Decision((record,), after_append=lambda: self._waiting.wake(name))

        def retry(_: ErrorCode) -> None:
            shard.state.env.timers.schedule(
                ("complete", name), RETRY_MS, lambda _now_ms: self.complete(shard, transaction)
            )

        shard.write(decide, ignore, retry)

    def record(self, transaction: Transaction) -> CoordinatorRecord:
        """Return the record of a transaction, in the version that the cluster has agreed on."""
        return transaction_record(transaction, self._host.transaction_version())
