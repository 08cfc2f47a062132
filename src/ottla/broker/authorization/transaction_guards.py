"""The guards of APIs about transactions."""

from typing import Final

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import only_error
from ottla.broker.authorization.sorting import change_each, only, sort_out
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply
from ottla.security.rights import (
    CLUSTER,
    Operation,
    on_cluster,
    on_group,
    on_topic,
    on_transactional_id,
)
from ottla.wire.apis import ApiKey
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import (
    SEVERAL_FROM,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_CLUSTER: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_WRITE, _DESCRIBE = on_transactional_id(Operation.WRITE), on_transactional_id(Operation.DESCRIBE)
_CLUSTER_ACTION = on_cluster(Operation.CLUSTER_ACTION)


@guards(ApiKey.INIT_PRODUCER_ID)
def init_producer_id(ask: InitProducerIdRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the transactional id, or without one for any topic that the producer may write to."""
    error_code = ErrorCode.NONE
    if ask.transactional_id is not None:
        if not context.allows(_WRITE, ask.transactional_id) or (
            ask.enable_2pc
            and not context.allows(on_transactional_id(Operation.TWO_PHASE_COMMIT), ask.transactional_id)
        ):
            error_code = _DENIED
    elif not context.may(on_cluster(Operation.IDEMPOTENT_WRITE), CLUSTER) and not context.may_some(
        on_topic(Operation.WRITE)
    ):
        context.allows(on_cluster(Operation.IDEMPOTENT_WRITE), CLUSTER)
        error_code = _CLUSTER
    if error_code is ErrorCode.NONE:
        return serve(ask)
    return InitProducerIdResponse(error_code=error_code, producer_id=-1, producer_epoch=-1)


@guards(ApiKey.ADD_PARTITIONS_TO_TXN)
def add_partitions_to_txn(ask: AddPartitionsToTxnRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask clients for the transactional id and each topic, and brokers for the right of a broker."""
    if context.version >= SEVERAL_FROM:
        if context.allows(_CLUSTER_ACTION, CLUSTER):
            return serve(ask)
        return only_error(AddPartitionsToTxnResponse, _CLUSTER)
    topics = ask.v3_and_below_topics
    if not context.allows(_WRITE, ask.v3_and_below_transactional_id):
        denied = {topic.name for topic in topics}
        error_code, other = _DENIED, _DENIED
    else:
        denied = {topic.name for topic in topics if not context.allows(on_topic(Operation.WRITE), topic.name)}
        error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        other = ErrorCode.OPERATION_NOT_ATTEMPTED
    if not denied:
        return serve(ask)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=number,
                        partition_error_code=error_code if topic.name in denied else other,
                    )
                    for number in topic.partitions
                ),
            )
            for topic in topics
        )
    )


@guards(ApiKey.ADD_OFFSETS_TO_TXN)
def add_offsets_to_txn(ask: AddOffsetsToTxnRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the transactional id and the group."""
    if not context.allows(_WRITE, ask.transactional_id):
        return AddOffsetsToTxnResponse(error_code=_DENIED)
    if not context.allows(on_group(Operation.READ), ask.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return serve(ask)


@guards(ApiKey.END_TXN)
def end_txn(ask: EndTxnRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the transactional id."""
    if context.allows(_WRITE, ask.transactional_id):
        return serve(ask)
    return only_error(EndTxnResponse, _DENIED)


@guards(ApiKey.WRITE_TXN_MARKERS)
def write_txn_markers(ask: WriteTxnMarkersRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the right of a broker, or that to alter the cluster."""
    if context.may(on_cluster(Operation.ALTER), CLUSTER) or context.allows(_CLUSTER_ACTION, CLUSTER):
        return serve(ask)
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=number, error_code=_CLUSTER)
                            for number in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in ask.markers
        )
    )


@guards(ApiKey.DESCRIBE_TRANSACTIONS)
def describe_transactions(ask: DescribeTransactionsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each transactional id. Topics that the client may not describe are left out."""

    def refuse(transactional_id: str) -> TransactionState | None:
        if context.allows(_DESCRIBE, transactional_id):
            return None
        return only_error(TransactionState, _DENIED, transactional_id=transactional_id)

    def leave_out(state: TransactionState) -> TransactionState:
        visible = tuple(
            topic for topic in state.topics if context.may(on_topic(Operation.DESCRIBE), topic.topic)
        )
        return replace(state, topics=visible)

    answer = sort_out(
        context,
        ask,
        serve,
        "transactional_ids",
        "transaction_states",
        refuse,
        DescribeTransactionsResponse,
    )
    return change_each(context, answer, "transaction_states", leave_out)


@guards(ApiKey.LIST_TRANSACTIONS)
def list_transactions(ask: ListTransactionsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Leave out transactional ids that the client may not describe."""

    may_see = only(lambda state: context.may(_DESCRIBE, state.transactional_id))
    return change_each(context, serve(ask), "transaction_states", may_see)
