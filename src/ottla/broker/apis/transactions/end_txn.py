"""EndTxn: a producer commits or aborts its transaction. Answered when the outcome is decided for good."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.transaction_checks import CLIENT_VERSION
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.transaction.coordinator import ProducerIdResult
from ottla.coordination.transaction.decide import Identity
from ottla.security.rights import Operation, on_transactional_id
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.end_txn import FENCED_FROM, RAISES_EPOCHS_FROM, EndTxnRequest, EndTxnResponse


@serves(EndTxnRequest, "0-5", OfRequest(on_transactional_id(Operation.WRITE), "transactional_id"))
def end_txn(ask: EndTxnRequest, context: BrokerContext) -> Deferred[EndTxnResponse]:
    """Decide the outcome."""
    version = context.version
    answer: Deferred[EndTxnResponse] = Deferred()

    def ended(result: ProducerIdResult) -> None:
        code = result.error_code
        if code is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
            # Older clients do not know the code.
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        answer.resolve(
            EndTxnResponse(
                error_code=code, producer_id=result.producer_id, producer_epoch=result.producer_epoch
            )
        )

    context.broker.transactions.coordinator.end(
        ask.transactional_id,
        Identity(ask.producer_id, ask.producer_epoch),
        ask.committed,
        CLIENT_VERSION if version >= RAISES_EPOCHS_FROM else 0,
        ended,
    )
    return answer
