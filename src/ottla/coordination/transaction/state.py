"""The state of one shard: its transactional ids, folded from its records."""

from collections.abc import Iterable

from ottla.coordination.runtime.decision import Decision, ProducerIdentity
from ottla.coordination.transaction.decide import has_expired, has_timed_out
from ottla.coordination.transaction.environment import TransactionEnvironment
from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import Transaction, replayed, transaction_tombstone
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.transaction import TransactionLogKey


class TransactionShard:
    """Transactional ids. Implements the runtime's `State`."""

    def __init__(self, environment: TransactionEnvironment) -> None:
        self.env = environment
        self.transactions: dict[str, Transaction] = {}
        # Those that may time out: few, however many ids there are. In order, since a set of names has another
        # one in each process: a simulation could not be repeated.
        self.ongoing: dict[str, None] = {}

    def find(self, transactional_id: str) -> Transaction | None:
        """Return what is known of an id."""
        return self.transactions.get(transactional_id)

    # Replaying

    def replay(self, records: Iterable[CoordinatorRecord], _producer: ProducerIdentity | None) -> None:
        """Apply records."""
        for record in records:
            if isinstance(record.key, TransactionLogKey):
                self._replay(record.key, record)

    def _replay(self, key: TransactionLogKey, record: CoordinatorRecord) -> None:
        name = key.transactional_id
        if record.value is None:
            self.transactions.pop(name, None)
            self.ongoing.pop(name, None)
            return
        after = replayed(self.transactions.get(name), name, record.value)
        self.transactions[name] = after
        if after.status is TransactionStatus.ONGOING:
            self.ongoing[name] = None
        else:
            self.ongoing.pop(name, None)

    def replay_marker(self, _producer: ProducerIdentity, _committed: bool) -> None:
        """Do nothing: nobody writes to this topic in a transaction."""

    def note_raised(self, transactional_id: str, producer_epoch: int, raised_from: int) -> None:
        """Remember from which epoch InitProducerId went on, as long as what it gave out is the newest.

        No record says so, in Kafka neither. After another node took over, a retry is fenced instead of
        answered again: safe, but a new instance has to be started.
        """
        transaction = self.transactions.get(transactional_id)
        if transaction is not None and transaction.producer_epoch == producer_epoch:
            self.transactions[transactional_id] = transaction._replace(last_epoch=raised_from)

    # The life of the shard

    def activate(self, _now_ms: int) -> None:
        """Go on with outcomes that were decided but not written everywhere, and watch the time."""
        for transaction in list(self.transactions.values()):
            if transaction.status.is_ending:
                self.env.resume(transaction)
        self._schedule_aborts()
        self._schedule_expiry()

    def deactivate(self) -> None:
        """Stop watching."""
        self.env.timers.clear()
        for name in list(self.transactions):
            self.env.wake_waiting(name)

    # Time

    def _schedule_aborts(self) -> None:
        self.env.timers.schedule(("aborts",), self.env.settings.abort_interval_ms, self._abort_timed_out)

    def _abort_timed_out(self, now_ms: int) -> None:
        self._schedule_aborts()
        for name in list(self.ongoing):
            transaction = self.transactions[name]
            if has_timed_out(transaction, now_ms):
                self.env.abort(transaction, now_ms)

    def _schedule_expiry(self) -> None:
        self.env.timers.schedule(("expiry",), self.env.settings.expiry_interval_ms, self._expire)

    def _expire(self, now_ms: int) -> None:
        self._schedule_expiry()
        self.env.submit(lambda: self._decide_expiry(now_ms))

    def _decide_expiry(self, now_ms: int) -> Decision[None]:
        expiration_ms = self.env.settings.id_expiration_ms
        expired = [one for one in self.transactions.values() if has_expired(one, expiration_ms, now_ms)]
        records = tuple(transaction_tombstone(one.transactional_id) for one in expired)
        return Decision(records, is_atomic=False)
