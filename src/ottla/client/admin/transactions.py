"""Transactions: list and describe them, see who writes to a partition, and end one that hangs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client import surroundings
from ottla.client.admin.results import Results
from ottla.client.admin.routes import ByVersion, Routes, by_topic, outcome_of
from ottla.client.cluster import TRANSACTION
from ottla.client.errors import BrokerError, ClientError, UnsupportedByBroker, raise_for
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """One line of the list of transactions."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id with its transaction. The start is None while none is open."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_at_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer as the leader of a partition knows it. No start offset: it has no transaction open there."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """A transaction that a partition has open and that no coordinator will ever end."""

    where: TopicPartition
    producer: ActiveProducer


class Transactions:
    """The transactions of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> tuple[TransactionListing, ...]:
        """List transactional ids of all coordinators, by name.

        `longer_than_ms` needs a broker of 3.8, `pattern`, a regular expression (RE2), one of 4.1.
        """

        def make(version: int) -> ListTransactionsRequest:
            if (longer_than_ms is not None and version < 1) or (pattern is not None and version < 2):
                raise UnsupportedByBroker("the broker is too old to choose by duration or by pattern")
            return ListTransactionsRequest(
                state_filters=tuple(states),
                producer_id_filters=tuple(producer_ids),
                duration_filter=-1 if longer_than_ms is None else longer_than_ms,
                transactional_id_pattern=pattern,
            )

        answers = (await self._routes.ask_all(ByVersion(ListTransactionsRequest, make))).check()
        found = []
        for node_id, answer in answers.items():
            raise_for(answer.error_code, f"broker {node_id} cannot list its transactions")
            if answer.unknown_state_filters:
                raise BrokerError(
                    ErrorCode.INVALID_REQUEST, f"unknown state: {', '.join(answer.unknown_state_filters)}"
                )
            found += [
                TransactionListing(item.transactional_id, item.producer_id, item.transaction_state, node_id)
                for item in answer.transaction_states
            ]
        return tuple(sorted(found, key=lambda item: item.transactional_id))

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """Describe one transactional id."""
        return (await self.describe_many([transactional_id]))[transactional_id]

    async def describe_many(self, transactional_ids: Collection[str]) -> Results[str, TransactionDescription]:
        """Describe transactional ids."""

        async def ask(node_id: int, keys: Sequence[str]) -> dict[str, TransactionDescription | ClientError]:
            request = DescribeTransactionsRequest(transactional_ids=tuple(keys))
            answer = await self._routes.ask_node(node_id, request)
            return {item.transactional_id: _described(item, node_id) for item in answer.transaction_states}

        return await self._routes.ask_coordinators(TRANSACTION, transactional_ids, ask)

    async def producers(
        self, partitions: Collection[TopicPartition]
    ) -> Results[TopicPartition, tuple[ActiveProducer, ...]]:
        """Return the producers that the leaders of partitions know."""

        async def ask(
            node_id: int, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, tuple[ActiveProducer, ...] | ClientError]:
            topics = tuple(
                DescribeProducersTopic(name=name, partition_indexes=tuple(numbers))
                for name, numbers in by_topic(keys).items()
            )
            answer = await self._routes.ask_node(node_id, DescribeProducersRequest(topics=topics))
            return {
                TopicPartition(topic.name, item.partition_index): outcome_of(
                    item.error_code,
                    f"cannot describe the producers of {topic.name}-{item.partition_index}",
                    item.error_message,
                    tuple(map(_producer, item.active_producers)),
                )
                for topic in answer.topics
                for item in topic.partitions
            }

        return await self._routes.ask_leaders(partitions, ask)

    async def find_hanging(
        self, partitions: Collection[TopicPartition], *, open_for_ms: int = 15 * 60_000
    ) -> tuple[HangingTransaction, ...]:
        """Find transactions that are open for longer than any may be, and that no coordinator knows of.

        `open_for_ms` is by default the broker's transaction.max.timeout.ms. What a coordinator still has as
        open will be ended by it, and does not hang.
        """
        oldest_ms = surroundings.now_ms() - open_for_ms
        suspects = [
            HangingTransaction(where, producer)
            for where, producers in (await self.producers(partitions)).check().items()
            for producer in producers
            if producer.transaction_start_offset is not None and producer.last_timestamp_ms < oldest_ms
        ]
        if not suspects:
            return ()
        listed = await self.list(producer_ids={suspect.producer.producer_id for suspect in suspects})
        described = await self.describe_many([item.transactional_id for item in listed])
        open_ones = {
            (item.producer_id, where) for item in described.succeeded.values() for where in item.partitions
        }
        return tuple(
            suspect for suspect in suspects if (suspect.producer.producer_id, suspect.where) not in open_ones
        )

    async def abort(self, where: TopicPartition, producer: ActiveProducer) -> None:
        """End a hanging transaction in one partition: write the marker that its coordinator never will."""
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            topics=(WritableTxnMarkerTopic(name=where.topic, partition_indexes=(where.partition,)),),
            # A producer that never ended a transaction there has none; 0 is at most any coordinator's.
            coordinator_epoch=max(producer.coordinator_epoch, 0),
        )
        request = WriteTxnMarkersRequest(markers=(marker,))

        async def ask(node_id: int, _: Sequence[TopicPartition]) -> dict[TopicPartition, ClientError | None]:
            answer = await self._routes.ask_node(node_id, request, repeatable=False)
            what = f"cannot abort the transaction of producer {producer.producer_id} in {where}"
            return {
                TopicPartition(topic.name, item.partition_index): outcome_of(
                    item.error_code, what, None, None
                )
                for result in answer.markers
                for topic in result.topics
                for item in topic.partitions
            }

        (await self._routes.ask_leaders([where], ask)).check()

    async def fence(self, transactional_id: str) -> tuple[int, int]:
        """End what a producer has open and keep it from going on; returns the new producer id and epoch."""

        def outcome(answer: Any) -> tuple[int, int] | ClientError:
            granted = (answer.producer_id, answer.producer_epoch)
            return outcome_of(answer.error_code, f"cannot fence {transactional_id!r}", None, granted)

        # The shortest timeout: nobody is going to use this incarnation.
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1)
        return await self._routes.ask_coordinator(TRANSACTION, transactional_id, request, outcome)


def _described(item: TransactionState, node_id: int) -> TransactionDescription | ClientError:
    description = TransactionDescription(
        transactional_id=item.transactional_id,
        coordinator=node_id,
        state=item.transaction_state,
        producer_id=item.producer_id,
        producer_epoch=item.producer_epoch,
        timeout_ms=item.transaction_timeout_ms,
        started_at_ms=item.transaction_start_time_ms if item.transaction_start_time_ms >= 0 else None,
        partitions=tuple(
            TopicPartition(topic.topic, number) for topic in item.topics for number in topic.partitions
        ),
    )
    return outcome_of(item.error_code, f"cannot describe {item.transactional_id!r}", None, description)


def _producer(item: Any) -> ActiveProducer:
    return ActiveProducer(
        producer_id=item.producer_id,
        producer_epoch=item.producer_epoch,
        last_sequence=item.last_sequence,
        last_timestamp_ms=item.last_timestamp,
        coordinator_epoch=item.coordinator_epoch,
        transaction_start_offset=(
            item.current_txn_start_offset if item.current_txn_start_offset >= 0 else None
        ),
    )
