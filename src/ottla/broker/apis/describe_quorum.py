"""DescribeQuorum: who votes on the metadata, and how far each has come."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


@handles(DescribeQuorumRequest)
def describe_quorum(ask: DescribeQuorumRequest, context: RequestContext) -> Deferred[DescribeQuorumResponse]:
    """Answer as the leader, if this node leads."""
    response: Deferred[DescribeQuorumResponse] = Deferred()
    context.broker.quorum.receive(ask, context.version, context.listener_name, response.resolve)
    return response
