"""AddPartitionsToTxn: partitions become part of a transaction, or a broker asks whether they are.

Clients (v0 to v3) announce partitions of one transaction. Brokers (v4 and later) ask for several at once, and
may only want to know. If one partition does not exist, none of its transaction is added.
"""

from typing import Final

from ottla.broker.deferred import Deferred, gather
from ottla.broker.handling.transaction_checks import CLIENT_VERSION
from ottla.broker.logs.partition import INTERNAL_TOPICS
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import TopicPartition
from ottla.security.rights import Operation, on_topic, on_transactional_id
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import (
    ADDS_FOR_VERSION_2_FROM,
    FENCED_FROM,
    SEVERAL_FROM,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

ELEMENTS_MAX: Final = 25_000
"""Partitions of all transactions together. A transaction is decided on as a whole, so it cannot be cut."""

Codes = dict[TopicPartition, ErrorCode]


@serves(
    AddPartitionsToTxnRequest,
    "0-5",
    on_transactional_id(Operation.WRITE),
    on_topic(Operation.WRITE),
    checked_by=CheckedBy.GUARD,
    cuts=(Cut("transactions", "results_by_transaction"),),
    elements_max=ELEMENTS_MAX,
)
def add_partitions_to_txn(
    ask: AddPartitionsToTxnRequest, context: BrokerContext
) -> Deferred[AddPartitionsToTxnResponse]:
    """Answer every transaction on its own."""
    if context.version >= SEVERAL_FROM:
        transactions = ask.transactions
        return gather([_one(transaction, context) for transaction in transactions]).then(
            lambda results: AddPartitionsToTxnResponse(
                results_by_transaction=tuple(
                    AddPartitionsToTxnResult(
                        transactional_id=transaction.transactional_id,
                        topic_results=_by_topic(transaction.topics, codes),
                    )
                    for transaction, codes in zip(transactions, results, strict=True)
                )
            )
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=ask.v3_and_below_transactional_id,
        producer_id=ask.v3_and_below_producer_id,
        producer_epoch=ask.v3_and_below_producer_epoch,
        topics=ask.v3_and_below_topics,
    )
    return _one(only, context).then(
        lambda codes: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(only.topics, codes))
    )


def _one(transaction: AddPartitionsToTxnTransaction, context: BrokerContext) -> Deferred[Codes]:
    partitions = frozenset(
        TopicPartition(topic.name, number) for topic in transaction.topics for number in topic.partitions
    )
    refusals = {where: _find_refusal(where, context) for where in partitions}
    if any(code is not ErrorCode.NONE for code in refusals.values()):
        return Deferred.of(
            {
                where: ErrorCode.OPERATION_NOT_ATTEMPTED if code is ErrorCode.NONE else code
                for where, code in refusals.items()
            }
        )
    answer: Deferred[Codes] = Deferred()
    who = Identity(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.broker.transactions.coordinator
    version = context.version
    if transaction.verify_only:
        coordinator.verify_partitions(transaction.transactional_id, who, partitions, answer.resolve)
        return answer

    def added(code: ErrorCode) -> None:
        if code is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
            # Older clients do not know the code.
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        answer.resolve(dict.fromkeys(partitions, code))

    coordinator.add_partitions(
        transaction.transactional_id,
        who,
        partitions,
        CLIENT_VERSION if version >= ADDS_FOR_VERSION_2_FROM else 0,
        added,
        # Deviation: Kafka has clients come back when the transaction before is not complete yet. Older ones
        # then pause for up to 100 ms, where a wait of a millisecond is enough.
        waits=version < SEVERAL_FROM,
    )
    return answer


def _find_refusal(where: TopicPartition, context: BrokerContext) -> ErrorCode:
    if context.version < SEVERAL_FROM and where.topic in INTERNAL_TOPICS:
        # Coordinators write there, and no client.
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = context.broker.image.topics.find(where.topic)
    is_there = topic is not None and where.partition in topic.partitions
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _by_topic(
    topics: tuple[AddPartitionsToTxnTopic, ...], codes: Codes
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=number, partition_error_code=codes[TopicPartition(topic.name, number)]
                )
                for number in topic.partitions
            ),
        )
        for topic in topics
    )
