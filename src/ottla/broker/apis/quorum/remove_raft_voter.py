"""RemoveRaftVoter: a controller is to vote on the metadata no longer."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves, serves_on_controller
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


@serves(
    RemoveRaftVoterRequest,
    "0",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
)
def remove_raft_voter(
    ask: RemoveRaftVoterRequest, context: RequestContext
) -> Deferred[RemoveRaftVoterResponse]:
    """Pass it on to the leader of the quorum."""
    return context.node.controller.ask(ask, context.caller())


@serves_on_controller(RemoveRaftVoterRequest)
def remove_raft_voter_here(
    ask: RemoveRaftVoterRequest, context: RequestContext
) -> Deferred[RemoveRaftVoterResponse]:
    """Answer as the leader, if this node leads."""
    return serve_by_quorum(ask, context)
