"""UpdateRaftVoter: a voter tells the leader where it listens now, and what it supports."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse


@serves(
    UpdateRaftVoterRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def update_raft_voter(
    ask: UpdateRaftVoterRequest, context: RequestContext
) -> Deferred[UpdateRaftVoterResponse]:
    """Let the voter be known by that."""
    return serve_by_quorum(ask, context)
