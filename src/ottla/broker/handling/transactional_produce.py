"""The transactional batches of a Produce request: their coordinator confirms them before one is appended.

The batches lie in the connection's receive buffer, which is used again as soon as a handler returns. So a
request that has to wait for the coordinator is copied; only the first one of a transaction to a partition is.
"""

from typing import Final, NamedTuple

from ottla.broker.deferred import Deferred
from ottla.broker.handling.transaction_checks import WriterSupport, confirm
from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import ProducerId, TopicPartition
from ottla.records.attributes import TRANSACTIONAL_BIT
from ottla.records.batch import HEADER
from ottla.storage.appending.verification import Verification
from ottla.storage.errors import AppendError
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import ABORTABLE_FROM, ADDS_PARTITIONS_FROM, TOPIC_IDS_FROM, ProduceRequest

_RETRIABLE: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
    )
)


class Confirmations(NamedTuple):
    """What the coordinator said."""

    verifications: dict[Partition, Verification]
    refusals: dict[Partition, ErrorCode]


NOTHING_TO_CONFIRM: Final = Confirmations({}, {})


class Confirmed(NamedTuple):
    """A request whose transaction is confirmed, as far as it is; with batches that nobody else writes to."""

    ask: ProduceRequest
    confirmations: Confirmations


def start_confirmation(ask: ProduceRequest, context: BrokerContext) -> Deferred[Confirmed] | ErrorCode | None:
    """Ask the coordinator about the transactional batches of a request.

    None if nobody need be asked. An error if the request as a whole makes no sense.
    """
    support = _support_of(context.version)
    needed: dict[TopicPartition, tuple[Partition, Verification]] = {}
    refusals: dict[Partition, ErrorCode] = {}
    senders: set[Identity] = set()
    by_id = context.version >= TOPIC_IDS_FROM
    now_ms = context.broker.clock.now_ms()
    for topic in ask.topic_data:
        name = topic.topic_id if by_id else topic.name
        for data in topic.partition_data:
            partition = context.broker.partitions.by_key.get((name, data.partition_index))
            batch = data.records
            if partition is None or batch is None or len(batch) < HEADER.size:
                continue
            _, _, _, _, _, attributes, _, _, _, producer_id, epoch, sequence, _ = HEADER.unpack_from(batch)
            if not attributes & TRANSACTIONAL_BIT or producer_id < 0:
                continue
            senders.add(Identity(producer_id, epoch))
            if not partition.is_leader or not _must_ask(partition, support):
                continue
            try:
                verification = partition.log.start_verification(
                    ProducerId(producer_id), epoch, sequence, support is WriterSupport.ADDS_PARTITIONS, now_ms
                )
            except AppendError as error:
                refusals[partition] = error.error_code
                continue
            if verification is not None:
                needed[TopicPartition(partition.topic, partition.index)] = (partition, verification)
    if len(senders) > 1:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    confirmations = Confirmations({}, refusals)
    if needed:
        return _ask(ask, senders.pop(), needed, confirmations, support, context)
    if not refusals:
        return None
    confirmed: Deferred[Confirmed] = Deferred()
    confirmed.resolve(Confirmed(ask, confirmations))
    return confirmed


def _must_ask(partition: Partition, support: WriterSupport) -> bool:
    return support is WriterSupport.ADDS_PARTITIONS or partition.log.config.verifies_transactions


def _ask(
    ask: ProduceRequest,
    sender: Identity,
    needed: dict[TopicPartition, tuple[Partition, Verification]],
    confirmations: Confirmations,
    support: WriterSupport,
    context: BrokerContext,
) -> Deferred[Confirmed]:
    assert ask.transactional_id is not None, "the handler has looked"
    confirmed: Deferred[Confirmed] = Deferred()
    kept = _copied(ask)

    def answered(codes: "dict[TopicPartition, ErrorCode]") -> None:
        for where, code in codes.items():
            partition, verification = needed[where]
            if code is ErrorCode.NONE:
                confirmations.verifications[partition] = verification
            else:
                confirmations.refusals[partition] = _for_producer(code, support)
        confirmed.resolve(Confirmed(kept, confirmations))

    confirm(
        ask.transactional_id,
        sender,
        frozenset(needed),
        support,
        context,
        lambda codes: answered(dict(codes)),
    )
    return confirmed


def _copied(ask: ProduceRequest) -> ProduceRequest:
    """Return the request with batches of its own."""
    return replace(
        ask,
        topic_data=tuple(
            replace(
                topic,
                partition_data=tuple(
                    replace(
                        data,
                        records=None if data.records is None else memoryview(bytearray(data.records)),
                    )
                    for data in topic.partition_data
                ),
            )
            for topic in ask.topic_data
        ),
    )


def _support_of(version: int) -> WriterSupport:
    if version >= ADDS_PARTITIONS_FROM:
        return WriterSupport.ADDS_PARTITIONS
    return WriterSupport.ABORTABLE_ERRORS if version >= ABORTABLE_FROM else WriterSupport.DEFAULT_ERRORS


def _for_producer(code: ErrorCode, support: WriterSupport) -> ErrorCode:
    """Return an error as producers understand it.

    Older ones do not come back after some errors from which they should; NOT_ENOUGH_REPLICAS is one after
    which they do, and without asking for metadata first.
    """
    if code in _RETRIABLE or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not WriterSupport.ADDS_PARTITIONS
    ):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
