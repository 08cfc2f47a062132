"""RemoveRaftVoter: a controller is to vote on the metadata no longer."""

from ottla.broker.deferred import Deferred
from ottla.broker.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles, handles_on_controller
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


@handles(RemoveRaftVoterRequest)
def remove_raft_voter(
    ask: RemoveRaftVoterRequest, context: RequestContext
) -> Deferred[RemoveRaftVoterResponse]:
    """Pass it on to the leader of the quorum."""
    return context.node.controller.ask(ask, context.caller())


@handles_on_controller(RemoveRaftVoterRequest)
def remove_raft_voter_here(
    ask: RemoveRaftVoterRequest, context: RequestContext
) -> Deferred[RemoveRaftVoterResponse]:
    """Answer as the leader, if this node leads."""
    return serve_by_quorum(ask, context)
