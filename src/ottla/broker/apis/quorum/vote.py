"""Vote: a candidate, or one that may become a candidate, asks a voter of the quorum."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.vote import VoteRequest, VoteResponse


@serves(
    VoteRequest,
    "0-2",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def vote(ask: VoteRequest, context: RequestContext) -> Deferred[VoteResponse]:
    """Give the vote, or not."""
    return serve_by_quorum(ask, context)
