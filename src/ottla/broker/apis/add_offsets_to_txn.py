"""AddOffsetsToTxn: the offsets of a group become part of a transaction.

What becomes part of it is the partition of `__consumer_offsets` that keeps the group. Clients of version 2
do not send this: their TxnOffsetCommit does it.
"""

from typing import Final

from ottla.broker.context import RequestContext
from ottla.broker.coordinators.groups import TOPIC as GROUP_TOPIC
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.broker.transaction_checks import client_name
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED_FROM: Final = 2


@handles(AddOffsetsToTxnRequest)
def add_offsets_to_txn(
    ask: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Deferred[AddOffsetsToTxnResponse]:
    """Add the group's partition to the transaction."""
    broker = context.broker
    number = broker.groups.coordinator.shards.partition_of(ask.group_id)
    if number is None:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    version = context.version
    answer: Deferred[AddOffsetsToTxnResponse] = Deferred()

    def added(code: ErrorCode) -> None:
        if code is ErrorCode.PRODUCER_FENCED and version < _FENCED_FROM:
            # Older clients do not know the code.
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        answer.resolve(AddOffsetsToTxnResponse(error_code=code))

    broker.transactions.coordinator.add_partitions(
        ask.transactional_id,
        Identity(ask.producer_id, ask.producer_epoch),
        frozenset((TopicPartition(GROUP_TOPIC, number),)),
        0,
        client_name(context),
        added,
        # As in AddPartitionsToTxn.
        waits=True,
    )
    return answer
