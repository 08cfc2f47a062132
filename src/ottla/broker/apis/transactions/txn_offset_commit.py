"""TxnOffsetCommit: a group's offsets, as part of a transaction. They count when it commits.

From version 5 on the request itself makes the group's partition part of the transaction. Before, the client
has done that by AddOffsetsToTxn, and the coordinator only has to confirm it.
"""

from collections.abc import Mapping, Sequence

from ottla.broker.coordinators.clients import client_of
from ottla.broker.coordinators.groups import TOPIC as GROUP_TOPIC
from ottla.broker.deferred import Deferred
from ottla.broker.handling.transaction_checks import WriterSupport, confirm
from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach, OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.group.offsets.commit import refused_transactional_commit
from ottla.coordination.runtime.decision import ProducerIdentity
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import NO_SEQUENCE, ProducerId, TopicPartition
from ottla.security.rights import Operation, on_group, on_topic, on_transactional_id
from ottla.storage.errors import AppendError
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.txn_offset_commit import (
    ABORTABLE_FROM,
    ADDS_PARTITIONS_FROM,
    LOADING_FROM,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


@serves(
    TxnOffsetCommitRequest,
    "0-5",
    OfRequest(on_transactional_id(Operation.WRITE), "transactional_id"),
    OfRequest(on_group(Operation.READ), "group_id"),
    OfEach(on_topic(Operation.READ), "topics.name", "topics"),
    cuts=(Cut("topics.partitions", "topics.partitions", at_once=250),),
)
def txn_offset_commit(
    ask: TxnOffsetCommitRequest, context: BrokerContext
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    """Sort out what does not exist, and let the group coordinator take the rest."""
    known, refused = _sort_out(ask, context)
    if not known:
        return TxnOffsetCommitResponse(topics=tuple(refused))
    version = context.version
    answer = _commit(replace(ask, topics=tuple(known)), context)
    return answer.then(lambda response: _merged(response, refused, version))


def _commit(ask: TxnOffsetCommitRequest, context: BrokerContext) -> Deferred[TxnOffsetCommitResponse]:
    broker = context.broker
    answer: Deferred[TxnOffsetCommitResponse] = Deferred()

    def refuse(code: ErrorCode) -> Deferred[TxnOffsetCommitResponse]:
        answer.resolve(refused_transactional_commit(ask, code))
        return answer

    if not ask.group_id:
        return refuse(ErrorCode.INVALID_GROUP_ID)
    coordinator = broker.groups.coordinator
    number = coordinator.shards.partition_of(ask.group_id)
    if number is None:
        return refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = broker.partitions.find(GROUP_TOPIC, number)
    if partition is None or not partition.is_leader:
        return refuse(ErrorCode.NOT_COORDINATOR)
    client = client_of(context)
    support = _support_of(context.version)
    try:
        proof = _start_verification(ask, partition, support, context)
    except AppendError as error:
        return refuse(error.error_code)

    def commit() -> None:
        producer = ProducerIdentity(ask.producer_id, ask.producer_epoch, proof)
        coordinator.commit_offsets_in_transaction(
            ask, producer, client, broker.clock.now_ms(), answer.resolve
        )

    def confirmed(codes: Mapping[TopicPartition, ErrorCode]) -> None:
        (code,) = codes.values()
        if code is ErrorCode.NONE:
            commit()
        elif code is ErrorCode.NETWORK_EXCEPTION:
            # Older clients do not expect that. They come back after this one.
            refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            refuse(code)

    if proof is None:
        commit()
    else:
        where = TopicPartition(GROUP_TOPIC, number)
        who = Identity(ask.producer_id, ask.producer_epoch)
        confirm(ask.transactional_id, who, frozenset((where,)), support, context, confirmed)
    return answer


def _start_verification(
    ask: TxnOffsetCommitRequest, partition: Partition, support: WriterSupport, context: BrokerContext
) -> object | None:
    adds = support is WriterSupport.ADDS_PARTITIONS
    if not adds and not partition.log.config.verifies_transactions:
        return None
    return partition.log.start_verification(
        ProducerId(ask.producer_id), ask.producer_epoch, NO_SEQUENCE, adds, context.broker.clock.now_ms()
    )


def _support_of(version: int) -> WriterSupport:
    if version >= ADDS_PARTITIONS_FROM:
        return WriterSupport.ADDS_PARTITIONS
    return WriterSupport.ABORTABLE_ERRORS if version >= ABORTABLE_FROM else WriterSupport.DEFAULT_ERRORS


def _sort_out(
    ask: TxnOffsetCommitRequest, context: BrokerContext
) -> tuple[list[TxnOffsetCommitRequestTopic], list[TxnOffsetCommitResponseTopic]]:
    topics = context.broker.image.topics
    known: list[TxnOffsetCommitRequestTopic] = []
    refused: list[TxnOffsetCommitResponseTopic] = []
    for topic in ask.topics:
        found = topics.find(topic.name)
        there = () if found is None else found.partitions
        missing = tuple(part for part in topic.partitions if part.partition_index not in there)
        if missing:
            refused.append(
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        TxnOffsetCommitResponsePartition(
                            partition_index=part.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        )
                        for part in missing
                    ),
                )
            )
        existing = tuple(part for part in topic.partitions if part.partition_index in there)
        if existing:
            known.append(replace(topic, partitions=existing))
    return known, refused


def _merged(
    response: TxnOffsetCommitResponse, refused: Sequence[TxnOffsetCommitResponseTopic], version: int
) -> TxnOffsetCommitResponse:
    """Put the answers together, one entry for each topic."""
    by_name: dict[str, list[TxnOffsetCommitResponsePartition]] = {}
    for topic in (*refused, *response.topics):
        by_name.setdefault(topic.name, []).extend(_understood(part, version) for part in topic.partitions)
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(name=name, partitions=tuple(partitions))
            for name, partitions in by_name.items()
        )
    )


def _understood(part: TxnOffsetCommitResponsePartition, version: int) -> TxnOffsetCommitResponsePartition:
    if version < LOADING_FROM and part.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # Older clients may crash on that one.
        return replace(part, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return part
