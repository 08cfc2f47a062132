"""AddRaftVoter: one more controller is to vote on the metadata."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves, serves_on_controller
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


@serves(
    AddRaftVoterRequest,
    "0-1",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
)
def add_raft_voter(ask: AddRaftVoterRequest, context: RequestContext) -> Deferred[AddRaftVoterResponse]:
    """Pass it on to the leader of the quorum."""
    return context.node.controller.ask(ask, context.caller())


@serves_on_controller(AddRaftVoterRequest)
def add_raft_voter_here(ask: AddRaftVoterRequest, context: RequestContext) -> Deferred[AddRaftVoterResponse]:
    """Answer as the leader, if this node leads."""
    return serve_by_quorum(ask, context)
