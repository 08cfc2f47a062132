"""What each request does to a transactional id. Nothing here changes anything: only replaying records does.

Every function takes the transaction as it is, or None if the id is not known, and returns an `Outcome`: the
transaction as it should be (None to leave it), or an error, or neither if there is nothing left to do.
"""

from typing import Final, NamedTuple

from ottla.coordination.transaction.ending import (
    Ending,
    find_ending,
    is_retry_over_ids,
    match_epoch,
)
from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    NO_TIME,
    TWO_PHASE_TIMEOUT_MS,
    Transaction,
    is_exhausted,
    raises_epochs,
)
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_S: Final = TransactionStatus


class Identity(NamedTuple):
    """Who a request says it is from."""

    producer_id: int
    producer_epoch: int


class Outcome(NamedTuple):
    """What a request does."""

    after: Transaction | None = None
    error_code: ErrorCode = ErrorCode.NONE
    raised_from: int = NO_EPOCH
    """The epoch that InitProducerId went on from, if its sender gave one: a retry may come with it again."""


def _refusal(error_code: ErrorCode) -> Outcome:
    """Return that nothing happens, and why."""
    return Outcome(error_code=error_code)


# InitProducerId


def init_needs_producer_id(transaction: Transaction | None, expected: Identity | None) -> bool:
    """Say whether InitProducerId needs a producer id that nobody had before."""
    if transaction is None:
        return True
    return (
        transaction.status.is_idle
        and transaction.epoch_is_exhausted
        and (expected is None or expected.producer_epoch == transaction.producer_epoch)
    )


def decide_init(
    transaction: Transaction | None,
    transactional_id: str,
    timeout_ms: int,
    expected: Identity | None,
    new_producer_id: int | None,
    now_ms: int,
) -> Outcome:
    """Give the id to a new instance of its producer, or to one that recovers from an error (KIP-360).

    An open transaction is not for the new instance: it has to be aborted first; see `decide_fence`.
    """
    if transaction is None:
        if new_producer_id is None:
            return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
        return Outcome(
            Transaction(
                transactional_id,
                new_producer_id,
                0,
                timeout_ms,
                updated_ms=now_ms,
                previous_producer_id=new_producer_id,
            )
        )
    if transaction.status.is_ending:
        # Its producer id may be about to change.
        return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
    if expected is not None and not may_go_on(transaction, expected):
        return _refusal(ErrorCode.PRODUCER_FENCED)
    if not transaction.status.is_idle:
        return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
    if init_needs_producer_id(transaction, expected):
        if new_producer_id is None:
            return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
        raised_from = NO_EPOCH if expected is None else transaction.producer_epoch
        return Outcome(
            _emptied(transaction, timeout_ms, now_ms, producer_id=new_producer_id, producer_epoch=0),
            raised_from=raised_from,
        )
    return _raised(transaction, timeout_ms, expected, now_ms)


def _raised(transaction: Transaction, timeout_ms: int, expected: Identity | None, now_ms: int) -> Outcome:
    epoch = transaction.producer_epoch
    if expected is None:
        return Outcome(_emptied(transaction, timeout_ms, now_ms, producer_epoch=epoch + 1))
    if expected.producer_epoch == epoch:
        return Outcome(_emptied(transaction, timeout_ms, now_ms, producer_epoch=epoch + 1), raised_from=epoch)
    if expected.producer_epoch == transaction.last_epoch:
        # A retry: its epoch was raised, but the answer was lost. Had another instance come since, the last
        # epoch would not be known any more.
        return Outcome(
            _emptied(transaction, timeout_ms, now_ms, producer_epoch=epoch),
            raised_from=transaction.last_epoch,
        )
    return _refusal(ErrorCode.PRODUCER_FENCED)


def may_go_on(transaction: Transaction, expected: Identity) -> bool:
    """Say whether an instance had the producer id last, or had the one before up to its last epoch."""
    return expected.producer_id == transaction.producer_id or (
        expected.producer_id == transaction.previous_producer_id and is_exhausted(expected.producer_epoch)
    )


def _emptied(transaction: Transaction, timeout_ms: int, now_ms: int, **fields: int) -> Transaction:
    return transaction.changed(
        timeout_ms=timeout_ms,
        status=_S.EMPTY,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIME,
        updated_ms=now_ms,
        **fields,
    )


# Partitions


def _check_writer(transaction: Transaction | None, who: Identity) -> ErrorCode:
    if transaction is None or transaction.producer_id != who.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != who.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def decide_add_partitions(
    transaction: Transaction | None,
    who: Identity,
    partitions: frozenset[TopicPartition],
    client_version: int,
    now_ms: int,
) -> Outcome:
    """Make partitions part of the transaction. The first ones begin it."""
    if transaction is not None and transaction.status.is_ending:
        # The producer may have an id already that the transaction gets when it is complete.
        return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
    error_code = _check_writer(transaction, who)
    if transaction is None or error_code is not ErrorCode.NONE:
        return _refusal(error_code)
    is_ongoing = transaction.status is _S.ONGOING
    if is_ongoing and partitions <= transaction.partitions:
        return Outcome()
    return Outcome(
        transaction.changed(
            status=_S.ONGOING,
            partitions=transaction.partitions | partitions,
            start_ms=transaction.start_ms if is_ongoing else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )
    )


def verify_partition(transaction: Transaction | None, who: Identity, partition: TopicPartition) -> ErrorCode:
    """Say whether a partition is part of the transaction that a producer has open."""
    error_code = _check_writer(transaction, who)
    if transaction is None or error_code is not ErrorCode.NONE:
        return error_code
    if transaction.status.is_ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_part = partition in transaction.partitions
    return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE


# The end

_ERROR_OF_ENDING: Final = {
    Ending.WAIT: ErrorCode.CONCURRENT_TRANSACTIONS,
    Ending.WRONG_STATE: ErrorCode.INVALID_TXN_STATE,
    Ending.FENCED: ErrorCode.PRODUCER_FENCED,
    Ending.ALREADY_DONE: ErrorCode.NONE,
}


def end_needs_producer_id(transaction: Transaction | None, client_version: int) -> bool:
    """Say whether an end uses up the last epoch, so that the producer goes on with another id."""
    return (
        transaction is not None
        and raises_epochs(client_version)
        and transaction.epoch_is_exhausted
        and not transaction.status.is_ending
    )


def decide_end(
    transaction: Transaction | None,
    who: Identity,
    committed: bool,
    client_version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> Outcome:
    """Decide how a transaction ends, as its client asks."""
    if transaction is None:
        return _refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    raises = raises_epochs(client_version)
    if raises and transaction.status.is_ending:
        # Whatever its id and epoch: it may be the producer that goes on already.
        return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_over_ids = raises and is_retry_over_ids(transaction, who.producer_id, who.producer_epoch)
    if transaction.producer_id != who.producer_id and not is_over_ids:
        return _refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    match = match_epoch(transaction, who.producer_id, who.producer_epoch)
    ending = find_ending(transaction.status, committed, match, raises)
    if ending in _ERROR_OF_ENDING:
        return _refusal(_ERROR_OF_ENDING[ending])
    if raises and transaction.epoch_is_exhausted and new_producer_id is None:
        return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
    status = _S.PREPARE_COMMIT if committed else _S.PREPARE_ABORT
    return Outcome(
        prepared(transaction, status, client_version, new_producer_id, now_ms, ending is Ending.DECIDE_EMPTY)
    )


def decide_fence(
    transaction: Transaction, transaction_version: int, new_producer_id: int | None, now_ms: int
) -> Outcome:
    """Abort an open transaction, and raise the epoch so that its producer cannot go on.

    That is done for a new instance of the producer, and when the time of the transaction is over. Which
    version counts is not the client's but the cluster's.
    """
    if transaction.status is not _S.ONGOING:
        return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
    if raises_epochs(transaction_version):
        if transaction.epoch_is_exhausted and new_producer_id is None:
            return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)
        return Outcome(
            prepared(transaction, _S.PREPARE_ABORT, transaction_version, new_producer_id, now_ms, False)
        )
    fenced = transaction._replace(
        producer_epoch=min(transaction.producer_epoch + 1, EPOCH_MAX), last_epoch=NO_EPOCH
    )
    return Outcome(prepared(fenced, _S.PREPARE_ABORT, 0, None, now_ms, False))


def prepared(
    transaction: Transaction,
    status: TransactionStatus,
    client_version: int,
    new_producer_id: int | None,
    now_ms: int,
    is_empty: bool,
) -> Transaction:
    """Return a transaction whose outcome is decided. From here on it can only be completed."""
    epoch = transaction.producer_epoch
    raises = raises_epochs(client_version)
    return transaction.changed(
        status=status,
        # The last epoch of all has none after it. Nobody should have it, but if so the abort must go through.
        producer_epoch=min(epoch + 1, EPOCH_MAX) if raises else epoch,
        next_producer_id=(
            new_producer_id
            if raises and transaction.epoch_is_exhausted and new_producer_id is not None
            else NO_PRODUCER_ID
        ),
        # One without partitions has not started, but its record needs a time.
        start_ms=now_ms if is_empty else transaction.start_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def completed(transaction: Transaction, now_ms: int) -> Transaction:
    """Return a transaction whose outcome is in all its partitions."""
    assert transaction.status.is_ending, "only a decided transaction can be completed"
    changes_id = transaction.raises_epochs and transaction.next_producer_id != NO_PRODUCER_ID
    return transaction.changed(
        status=_S.COMPLETE_COMMIT if transaction.is_commit else _S.COMPLETE_ABORT,
        producer_id=transaction.next_producer_id if changes_id else transaction.producer_id,
        producer_epoch=0 if changes_id else transaction.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=NO_PARTITIONS,
        updated_ms=now_ms,
    )


# Time


def has_timed_out(transaction: Transaction, now_ms: int) -> bool:
    """Say whether an open transaction has lasted longer than its producer said it may.

    Deviation: one that begins later than this from now was begun before the clock was set back. Nobody knows
    how long it lasts. In Kafka it is open, and holds readers up, until the clock is past its time.
    """
    return (
        transaction.status is _S.ONGOING
        and transaction.timeout_ms != TWO_PHASE_TIMEOUT_MS
        and abs(now_ms - transaction.start_ms) > transaction.timeout_ms
    )


def has_expired(transaction: Transaction, expiration_ms: int, now_ms: int) -> bool:
    """Say whether nobody has used an id for so long that it is forgotten."""
    return transaction.status.is_idle and transaction.updated_ms <= now_ms - expiration_ms
