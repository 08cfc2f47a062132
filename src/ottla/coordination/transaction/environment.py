"""What the transaction coordinator asks of its node, and what its shards ask of the coordinator."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ottla.coordination.runtime.decision import Decision
from ottla.coordination.runtime.timers import Timers
from ottla.coordination.transaction.settings import TransactionSettings
from ottla.coordination.transaction.transaction import Transaction
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.world.clock import Clock


class Markers(NamedTuple):
    """The outcome of a transaction, to be written to its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    coordinator_epoch: int
    transaction_version: int


class TransactionHost(Protocol):
    """What the node that runs a transaction coordinator gives to it."""

    clock: Clock

    def wake(self, deadline_ms: int) -> None:
        """Have `TransactionCoordinator.fire_timers` called at this monotonic time, or earlier."""

    def new_producer_id(self, take: Callable[[int | ErrorCode], None]) -> None:
        """Get a producer id that nobody had before."""

    def write_markers(self, shard: int, markers: Markers, done: Callable[[], None]) -> None:
        """Write markers to all partitions, as often as it takes, and tell when all of them are on disk.

        Partitions that do not exist any more are left out. If one refuses its marker for good, because
        another coordinator has taken over, nothing is reported.
        """

    def transaction_expired(self, transaction: Transaction) -> None:
        """Take note that a transaction is about to be aborted, for its time is over."""

    def transaction_version(self) -> int:
        """Return the finalized level of `transaction.version`."""


class TransactionEnvironment(Protocol):
    """What a shard asks of its coordinator."""

    settings: TransactionSettings
    timers: Timers

    def submit(self, decide: Callable[[], Decision[Any]]) -> None:
        """Write what a timer's action decides."""

    def resume(self, transaction: Transaction) -> None:
        """Go on with an outcome that was decided before the shard was loaded."""

    def abort(self, transaction: Transaction, now_ms: int) -> None:
        """Abort a transaction whose time is over."""

    def wake_waiting(self, transactional_id: str) -> None:
        """Let the writers go on that wait for a transaction to be complete."""
