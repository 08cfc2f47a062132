"""DescribeQuorum: who votes on the metadata, and how far each has come."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.quorum import describe
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


@handles(DescribeQuorumRequest, Cut("topics.partitions", "topics.partitions"))
def describe_quorum(ask: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    """Answer as the leader, which this node is."""
    broker = context.broker
    return describe.describe_quorum(broker.quorum.voter, ask, context.version, broker.clock.now_ms())
