"""Asking the transaction coordinator on another broker whether a write belongs to a transaction (KIP-890).

To each broker one request is under way at a time, and what comes meanwhile shares the next. While the
transaction before is not complete, a partition cannot be added: then the coordinator is asked again for a
short while, since otherwise the producer would be sent away and come back much later.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.broker.replication.broker_peer import BrokerPeer, Unanswered
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import TopicPartition
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


class _Queue:
    """The questions for one broker."""

    def __init__(self, peer: BrokerPeer, retry: Callable[[_Asked], None]) -> None:
        self._peer = peer
        self._retry = retry
        self._waiting: list[_Asked] = []
        self._is_asking = False

    def add(self, asked: _Asked) -> None:
        self._waiting.append(asked)
        if not self._is_asking:
            self._send()

    def close(self) -> None:
        self._peer.close()

    def _send(self) -> None:
        sent: dict[str, _Asked] = {}
        later: list[_Asked] = []
        for asked in self._waiting:
            if asked.transactional_id in sent:
                later.append(asked)
            else:
                sent[asked.transactional_id] = asked
        self._waiting = later
        self._is_asking = True

        def answered(response: Any) -> None:
            self._is_asking = False
            codes = _codes(response, sent)
            for transactional_id, asked in sent.items():
                self._settle(asked, codes[transactional_id])
            if self._waiting and not self._is_asking:
                self._send()

        request = AddPartitionsToTxnRequest(transactions=tuple(map(_transaction, sent.values())))
        self._peer.ask(request, answered)

    def _settle(self, asked: _Asked, codes: Codes) -> None:
        is_early = ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        if asked.adds and is_early and asked.tries_left:
            self._retry(asked._replace(tries_left=asked.tries_left - 1))
        else:
            asked.answer(codes)


class RemoteChecks:
    """The questions for all other brokers."""

    def __init__(
        self, peer: Callable[[int], BrokerPeer], scheduler: Scheduler, backoff_ms: Callable[[], int]
    ) -> None:
        """`peer` makes a connection to a broker."""
        self._peer = peer
        self._scheduler = scheduler
        self._backoff_ms = backoff_ms
        self._queues: dict[int, _Queue] = {}

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
        self._add(broker_id, _Asked(transactional_id, who, partitions, adds, answer, _TRIES_MAX))

    def close(self) -> None:
        """Stop. Who waits is told that there was no answer."""
        queues, self._queues = self._queues, {}
        for queue in queues.values():
            queue.close()

    def _add(self, broker_id: int, asked: _Asked) -> None:
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue(
                self._peer(broker_id), lambda again: self._add_later(broker_id, again)
            )
        queue.add(asked)

    def _add_later(self, broker_id: int, asked: _Asked) -> None:
        self._scheduler.call_later(self._backoff_ms(), self._add, broker_id, asked)


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


def _codes(response: Any, sent: Mapping[str, _Asked]) -> dict[str, Codes]:
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
        transactional_id: {
            one: told.get(transactional_id, {}).get(one, error_code) for one in asked.partitions
        }
        for transactional_id, asked in sent.items()
    }
