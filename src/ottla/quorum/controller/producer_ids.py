"""Producer ids, given to brokers in blocks so that no id is ever given twice."""

from collections.abc import Mapping
from typing import Final
from zlib import crc32

from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.metadata_records.producer_ids import ProducerIdsRecord

BLOCK_SIZE: Final = 1000
MIRROR_SOURCE: Final = "ottla.mirror.source"
OWN_RANGE_START: Final = 1 << 62
"""From here on are the ranges of clusters that hold mirrors."""
_PRODUCER_ID_MAX: Final = 2**63 - 1


def own_range(view: ControllerView, new_configs: Mapping[str, str | None]) -> list[ProducerIdsRecord]:
    """Return what makes this cluster allocate ids that no other cluster has, if a topic becomes a mirror.

    A mirror has the batches of the source's producers with their ids. After a fail-over, a producer of this
    cluster with the same id would be taken for one of them, and its records for duplicates.
    """
    if not new_configs.get(MIRROR_SOURCE) or view.image.next_producer_id >= OWN_RANGE_START:
        return []
    place = crc32(view.settings.cluster_id.encode()) >> 2
    return [
        ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=OWN_RANGE_START + (place << 32))
    ]


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
