"""One transactional id: its producer and its latest transaction, and the record that keeps both.

A record holds all of it, so the newest one of an id is its state. Only `last_epoch` is in no record; see
`replayed`.
"""

from typing import Any, Final, NamedTuple

from ottla.coordination.transaction.status import FOLLOWERS, TransactionStatus
from ottla.model.ids import TopicPartition
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.transaction import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
)
from ottla.wire.errors import MalformedBytes

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = 32_767
NO_TIME: Final = -1
NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
TWO_PHASE_TIMEOUT_MS: Final = 2**31 - 1
"""The timeout of a producer that takes part in a two-phase commit: none."""


class Transaction(NamedTuple):
    """The state of a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus = TransactionStatus.EMPTY
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    client_version: int = 0
    """The transaction version that the client speaks: 2 raises the epoch with every transaction (KIP-890)."""
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The id to go on with once a transaction is complete that used up the last epoch."""
    last_epoch: int = NO_EPOCH
    """The epoch before this one, while its owner may still come back with it (KIP-360)."""

    @property
    def epoch_is_exhausted(self) -> bool:
        """Say whether the next epoch must be that of another producer id.

        The very last epoch is kept back, so that a producer can always be fenced.
        """
        return is_exhausted(self.producer_epoch)

    @property
    def raises_epochs(self) -> bool:
        """Say whether the epoch was raised when the outcome was decided."""
        return raises_epochs(self.client_version)

    @property
    def is_commit(self) -> bool:
        """Say whether the outcome is a commit."""
        return self.status in (TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT)

    def changed(self, **fields: Any) -> "Transaction":
        """Return what follows. The id of now becomes the previous one, as in Kafka, also if it stays."""
        after = self._replace(previous_producer_id=self.producer_id, **fields)
        assert after.status in FOLLOWERS[self.status], f"{after.status.name} cannot follow {self.status.name}"
        return after


def is_exhausted(epoch: int) -> bool:
    """Say whether an epoch is the last one that a client may have."""
    return epoch >= EPOCH_MAX - 1


def raises_epochs(transaction_version: int) -> bool:
    """Say whether a version of transactions raises the epoch with every transaction."""
    return transaction_version >= 2


def transaction_record(transaction: Transaction, transaction_version: int) -> CoordinatorRecord:
    """Return the record of a state, in the version that the cluster's feature level asks for."""
    version = 1 if transaction_version >= 1 else 0
    partitions = None
    if transaction.status is not TransactionStatus.EMPTY:
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(transaction.partitions):
            by_topic.setdefault(topic, []).append(number)
        partitions = tuple(
            TransactionPartitions(topic=topic, partition_ids=tuple(numbers))
            for topic, numbers in by_topic.items()
        )
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if version else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if version else NO_PRODUCER_ID,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version if version else 0,
    )
    return CoordinatorRecord(TransactionLogKey(transactional_id=transaction.transactional_id), value, version)


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    """Return the record that deletes an id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None, -1)


def replayed(before: Transaction | None, transactional_id: str, value: TransactionLogValue) -> Transaction:
    """Return the state that a record says."""
    # Whether it may follow what was before is not asked: compaction may have taken what lay between.
    try:
        status = TransactionStatus(value.transaction_status)
    except ValueError:
        raise MalformedBytes(
            f"{transactional_id} has the unknown status {value.transaction_status}"
        ) from None
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        status,
        frozenset(
            TopicPartition(topic.topic, number)
            for topic in value.transaction_partitions or ()
            for number in topic.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.client_transaction_version,
        value.previous_producer_id,
        value.next_producer_id,
        _last_epoch(before, status, value),
    )


def _last_epoch(before: Transaction | None, status: TransactionStatus, value: TransactionLogValue) -> int:
    """Return the epoch with which the owner may come back once more, as far as the records tell.

    Where an outcome raised the epoch it is the one before. For InitProducerId, see
    `TransactionShard.note_raised`: its record does not say whether it went on from an epoch.
    """
    if raises_epochs(value.client_transaction_version):
        if status.is_ending:
            return value.producer_epoch - 1
        if status in (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT):
            return EPOCH_MAX - 1 if value.producer_epoch == 0 else value.producer_epoch - 1
    if before is not None and status is not TransactionStatus.EMPTY:
        return before.last_epoch
    return NO_EPOCH
