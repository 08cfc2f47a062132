"""InitProducerId: a producer gets its id. Only without a transactional id, so far: then it is idempotent.

A producer that comes back with an id and an epoch (v3+) wants its epoch raised after an error. Without a
transactional id nobody keeps its epoch, so it gets a new id, as in Kafka.
"""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@handles(InitProducerIdRequest)
def init_producer_id(
    ask: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Deferred[InitProducerIdResponse]:
    """Give the producer an id, with epoch 0."""
    if ask.transactional_id == "" or (ask.producer_id < 0) != (ask.producer_epoch < 0):
        return _refused(ErrorCode.INVALID_REQUEST)
    if ask.transactional_id is not None:
        # Nobody coordinates transactions here yet.
        return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return context.broker.producer_ids.next(context).then(_answer)


def _answer(producer_id: int | ErrorCode) -> InitProducerIdResponse:
    if isinstance(producer_id, ErrorCode):
        return _refused(producer_id)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error_code, producer_id=-1, producer_epoch=-1)
