"""DescribeQuorum: who votes on the metadata, and how far each has come."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves, serves_on_controller
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


@serves(
    DescribeQuorumRequest,
    "0-2",
    on_cluster(Operation.DESCRIBE),
    listeners=BOTH,
    is_forwarded=True,
)
def describe_quorum(ask: DescribeQuorumRequest, context: RequestContext) -> Deferred[DescribeQuorumResponse]:
    """Pass it on to the leader of the quorum."""
    return context.node.controller.ask(ask, context.caller())


@serves_on_controller(DescribeQuorumRequest)
def describe_quorum_here(
    ask: DescribeQuorumRequest, context: RequestContext
) -> Deferred[DescribeQuorumResponse]:
    """Answer as the leader, if this node leads."""
    return serve_by_quorum(ask, context)
