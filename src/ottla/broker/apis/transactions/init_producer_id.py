"""InitProducerId: a producer gets its id and epoch, and with a transactional id all before it are fenced.

A producer that comes back with an id and an epoch (v3+) wants its epoch raised after an error. Without a
transactional id nobody keeps its epoch, so it gets a new id, as in Kafka.
"""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.transaction.coordinator import ProducerIdResult
from ottla.coordination.transaction.decide import Identity
from ottla.security.rights import Operation, on_cluster, on_transactional_id
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.init_producer_id import FENCED_FROM, InitProducerIdRequest, InitProducerIdResponse


@serves(
    InitProducerIdRequest,
    "0-5",
    on_transactional_id(Operation.WRITE),
    on_cluster(Operation.IDEMPOTENT_WRITE),
    checked_by=CheckedBy.GUARD,
    has_unstable=True,
)
def init_producer_id(
    ask: InitProducerIdRequest, context: BrokerContext
) -> InitProducerIdResponse | Deferred[InitProducerIdResponse]:
    """Give the producer an id."""
    if (ask.producer_id == -1) != (ask.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)

    def seen(response: InitProducerIdResponse) -> InitProducerIdResponse:
        if response.error_code is ErrorCode.NONE:
            context.broker.journal.producer_seen(
                context, response.producer_id, response.producer_epoch, ask.transactional_id
            )
        return response

    if ask.transactional_id is None:
        return context.broker.producer_ids.next().then(_answer_idempotent).then(seen)
    expected = None if ask.producer_id == -1 else Identity(ask.producer_id, ask.producer_epoch)
    version = context.version
    answer: Deferred[InitProducerIdResponse] = Deferred()
    context.broker.transactions.coordinator.init_producer_id(
        ask.transactional_id,
        ask.transaction_timeout_ms,
        expected,
        lambda result: answer.resolve(seen(_answer(result, version))),
        ask.enable_2pc,
        ask.keep_prepared_txn,
    )
    return answer


def _answer(result: ProducerIdResult, version: int) -> InitProducerIdResponse:
    if result.error_code is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
        # Older clients do not know the code.
        return _refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    return InitProducerIdResponse(
        error_code=result.error_code, producer_id=result.producer_id, producer_epoch=result.producer_epoch
    )


def _answer_idempotent(producer_id: int | ErrorCode) -> InitProducerIdResponse:
    if isinstance(producer_id, ErrorCode):
        return _refused(producer_id)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error_code, producer_id=-1, producer_epoch=-1)
