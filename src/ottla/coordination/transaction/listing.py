"""DescribeTransactions and ListTransactions: what a shard says about its transactional ids."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.coordination.transaction.status import STATUS_BY_TITLE
from ottla.coordination.transaction.transaction import Transaction
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_transactions import TopicData, TransactionState
from ottla.wire.messages.list_transactions import ListedTransaction


class Filters(NamedTuple):
    """Which transactions to list. All that are set must match."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    """Only those that began longer ago than this; below 0 for all."""
    matches: Callable[[str], bool] | None = None
    """Says whether a transactional id fits the pattern that was asked for."""


def describe_transaction(transactional_id: str, transaction: Transaction | None) -> TransactionState:
    """Describe one transactional id."""
    if transaction is None:
        return refused_description(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(number)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.status.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=tuple(
            TopicData(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()
        ),
    )


def refused_description(transactional_id: str, error_code: ErrorCode) -> TransactionState:
    """Say why an id is not described."""
    return TransactionState(
        error_code=error_code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=(),
    )


def unknown_states(states: Iterable[str]) -> tuple[str, ...]:
    """Return the filters that name no state."""
    return tuple(state for state in dict.fromkeys(states) if state not in STATUS_BY_TITLE)


def list_transactions(
    transactions: Iterable[Transaction], filters: Filters, now_ms: int
) -> list[ListedTransaction]:
    """Return those that pass the filters."""
    return [
        ListedTransaction(
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            transaction_state=one.status.title,
        )
        for one in transactions
        if _passes(one, filters, now_ms)
    ]


def _passes(transaction: Transaction, filters: Filters, now_ms: int) -> bool:
    return (
        (not filters.producer_ids or transaction.producer_id in filters.producer_ids)
        and (not filters.states or transaction.status.title in filters.states)
        and (filters.duration_ms < 0 or now_ms - transaction.start_ms > filters.duration_ms)
        and (filters.matches is None or filters.matches(transaction.transactional_id))
    )
