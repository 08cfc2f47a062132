"""BeginQuorumEpoch: a new leader of the quorum makes itself known."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


@serves(
    BeginQuorumEpochRequest,
    "0-1",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def begin_quorum_epoch(
    ask: BeginQuorumEpochRequest, context: RequestContext
) -> Deferred[BeginQuorumEpochResponse]:
    """Follow it, unless a later epoch is known."""
    return serve_by_quorum(ask, context)
