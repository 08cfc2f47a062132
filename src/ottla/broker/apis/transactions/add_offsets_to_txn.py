"""AddOffsetsToTxn: the offsets of a group become part of a transaction.

What becomes part of it is the partition of `__consumer_offsets` that keeps the group. Clients of version 2
do not send this: their TxnOffsetCommit does it.

A cluster may learn of its first group in this way: some clients ask for the group's coordinator only
afterwards. So the topic is made here too, if need be.
Deviation: Kafka adds the partition that the group will have, and leaves the topic to be made later.
"""

from ottla.broker.cluster.auto_topics import create_missing_topics
from ottla.broker.coordinators.groups import TOPIC as GROUP_TOPIC
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import TopicPartition
from ottla.security.rights import Operation, on_group, on_transactional_id
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import (
    FENCED_FROM,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)


@serves(
    AddOffsetsToTxnRequest,
    "0-4",
    OfRequest(on_transactional_id(Operation.WRITE), "transactional_id"),
    OfRequest(on_group(Operation.READ), "group_id"),
)
def add_offsets_to_txn(
    ask: AddOffsetsToTxnRequest, context: BrokerContext
) -> Deferred[AddOffsetsToTxnResponse]:
    """Add the group's partition to the transaction."""
    answer: Deferred[AddOffsetsToTxnResponse] = Deferred()
    if context.broker.image.topics.find(GROUP_TOPIC) is None:
        create_missing_topics([GROUP_TOPIC], context).when_done(
            lambda _: _add(ask, context, answer), answer.fail
        )
    else:
        _add(ask, context, answer)
    return answer


def _add(
    ask: AddOffsetsToTxnRequest, context: BrokerContext, answer: Deferred[AddOffsetsToTxnResponse]
) -> None:
    broker = context.broker
    number = broker.groups.coordinator.shards.partition_of(ask.group_id)
    if number is None:
        answer.resolve(AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    version = context.version

    def added(code: ErrorCode) -> None:
        if code is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
            # Older clients do not know the code.
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        answer.resolve(AddOffsetsToTxnResponse(error_code=code))

    broker.transactions.coordinator.add_partitions(
        ask.transactional_id,
        Identity(ask.producer_id, ask.producer_epoch),
        frozenset((TopicPartition(GROUP_TOPIC, number),)),
        0,
        added,
        # As in AddPartitionsToTxn.
        waits=True,
    )
