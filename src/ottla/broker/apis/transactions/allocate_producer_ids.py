"""AllocateProducerIds: a broker gets a block of producer ids."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


@serves(
    AllocateProducerIdsRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def allocate_producer_ids(
    ask: AllocateProducerIdsRequest, context: RequestContext
) -> Deferred[AllocateProducerIdsResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
