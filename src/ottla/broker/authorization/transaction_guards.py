"""The guards of InitProducerId and AddPartitionsToTxn, which depend on more than one field."""

from typing import Final

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import only_error
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply
from ottla.security.rights import (
    CLUSTER,
    Operation,
    on_cluster,
    on_topic,
    on_transactional_id,
)
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import (
    SEVERAL_FROM,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

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
