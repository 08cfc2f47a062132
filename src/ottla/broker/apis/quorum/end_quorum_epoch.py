"""EndQuorumEpoch: the leader of the quorum resigns, and says who should be the next."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


@serves(
    EndQuorumEpochRequest,
    "0-1",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def end_quorum_epoch(ask: EndQuorumEpochRequest, context: RequestContext) -> Deferred[EndQuorumEpochResponse]:
    """Prepare for an election."""
    return serve_by_quorum(ask, context)
