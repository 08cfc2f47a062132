"""DescribeQuorum: who votes on the metadata, and how far each has come."""

from ottla.broker.deferred import Deferred
from ottla.broker.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles, handles_on_controller
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


@handles(DescribeQuorumRequest)
def describe_quorum(ask: DescribeQuorumRequest, context: RequestContext) -> Deferred[DescribeQuorumResponse]:
    """Pass it on to the leader of the quorum."""
    return context.node.controller.ask(ask, context.caller())


@handles_on_controller(DescribeQuorumRequest)
def describe_quorum_here(
    ask: DescribeQuorumRequest, context: RequestContext
) -> Deferred[DescribeQuorumResponse]:
    """Answer as the leader, if this node leads."""
    return serve_by_quorum(ask, context)
