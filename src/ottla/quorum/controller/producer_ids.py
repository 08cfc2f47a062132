"""Producer ids, given to brokers in blocks so that no id is ever given twice."""

from typing import Final

from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.metadata_records.producer_ids import ProducerIdsRecord

BLOCK_SIZE: Final = 1000
_PRODUCER_ID_MAX: Final = 2**63 - 1


def refuse_allocate_producer_ids(
    _ask: AllocateProducerIdsRequest, refusal: Refusal
) -> AllocateProducerIdsResponse:
    """Refuse a request as a whole."""
    return AllocateProducerIdsResponse(error_code=refusal.error_code, producer_id_start=0, producer_id_len=0)


@decides(AllocateProducerIdsRequest, refuse=refuse_allocate_producer_ids)
def decide_allocate_producer_ids(
    view: ControllerView, ask: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    """Give the next block to a broker."""
    broker = view.image.brokers.get(ask.broker_id)
    if broker is None or broker.broker_epoch != ask.broker_epoch:
        return Decision(refuse_allocate_producer_ids(ask, Refusal(ErrorCode.STALE_BROKER_EPOCH)))
    start = max(view.image.next_producer_id, 0)
    if start > _PRODUCER_ID_MAX - BLOCK_SIZE:
        return Decision(refuse_allocate_producer_ids(ask, Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)))
    record = ProducerIdsRecord(
        broker_id=ask.broker_id, broker_epoch=ask.broker_epoch, next_producer_id=start + BLOCK_SIZE
    )
    reply = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    return Decision(reply, [record])
