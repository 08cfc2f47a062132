"""Asking the transaction coordinator on another broker whether a write belongs to a transaction (KIP-890).

While the transaction before is not complete, a partition cannot be added: then the coordinator is asked again
for a short while, since otherwise the producer would be sent away and come back much later.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.broker.coordinators.shared_requests import SharedRequests, Sharing
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import TopicPartition
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import Unanswered
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.world.scheduler import Scheduler

Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]
Answer: TypeAlias = Callable[[Codes], None]

_TRIES_MAX: Final = 5


class _Asked(NamedTuple):
    transactional_id: str
    who: Identity
    partitions: frozenset[TopicPartition]
    adds: bool
    answer: Answer
    tries_left: int


class RemoteChecks:
    """The questions for all other brokers."""

    def __init__(
        self, peer: Callable[[int], Link], scheduler: Scheduler, backoff_ms: Callable[[], int]
    ) -> None:
        """`peer` makes a connection to a broker."""
        self._scheduler = scheduler
        self._backoff_ms = backoff_ms
        sharing = Sharing(_transactional_id, _request, self._settle)
        self._requests: SharedRequests[_Asked] = SharedRequests(peer, sharing)

    def ask(
        self,
        broker_id: int,
        transactional_id: str,
        who: Identity,
        partitions: frozenset[TopicPartition],
        adds: bool,
        answer: Answer,
    ) -> None:
        """Have partitions added to a transaction, or ask whether they are in it."""
        self._requests.add(broker_id, _Asked(transactional_id, who, partitions, adds, answer, _TRIES_MAX))

    def close(self) -> None:
        """Stop. Those who wait get NETWORK_EXCEPTION."""
        self._requests.close()

    def _settle(self, broker_id: int, sent: Sequence[_Asked], response: Any) -> None:
        codes = _codes(response, sent)
        for asked in sent:
            told = codes[asked.transactional_id]
            is_early = ErrorCode.CONCURRENT_TRANSACTIONS in told.values()
            if asked.adds and is_early and asked.tries_left:
                again = asked._replace(tries_left=asked.tries_left - 1)
                self._scheduler.call_later(self._backoff_ms(), self._requests.add, broker_id, again)
            else:
                asked.answer(told)


def _transactional_id(asked: _Asked) -> str:
    return asked.transactional_id


def _request(asked: Sequence[_Asked]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=tuple(map(_transaction, asked)))


def _transaction(asked: _Asked) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for one in sorted(asked.partitions):
        topics.setdefault(one.topic, []).append(one.partition)
    return AddPartitionsToTxnTransaction(
        transactional_id=asked.transactional_id,
        producer_id=asked.who.producer_id,
        producer_epoch=asked.who.producer_epoch,
        verify_only=not asked.adds,
        topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=tuple(numbers)) for name, numbers in topics.items()
        ),
    )


def _codes(response: Any, sent: Sequence[_Asked]) -> dict[str, Codes]:
    """Return what was said of each partition of each transaction."""
    error_code = ErrorCode.NETWORK_EXCEPTION
    told: dict[str, dict[TopicPartition, ErrorCode]] = {}
    if not isinstance(response, Unanswered):
        assert isinstance(response, AddPartitionsToTxnResponse), "it is what was asked for"
        if response.error_code is not ErrorCode.NONE:
            # This broker may not ask: no retry would help.
            error_code = ErrorCode.INVALID_TXN_STATE
        told = {
            result.transactional_id: {
                TopicPartition(topic.name, one.partition_index): one.partition_error_code
                for topic in result.topic_results
                for one in topic.results_by_partition
            }
            for result in response.results_by_transaction
        }
    return {
        asked.transactional_id: {
            one: told.get(asked.transactional_id, {}).get(one, error_code) for one in asked.partitions
        }
        for asked in sent
    }
