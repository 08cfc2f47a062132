"""ElectLeaders: partitions get back their preferred leaders, or any leader at all."""

from ottla.broker.context import RequestContext
from ottla.broker.cuts import Cut
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.quorum.controller.elections import decide_elect_leaders
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


@handles(
    ElectLeadersRequest, Cut("topic_partitions.partitions", "replica_election_results.partition_results")
)
def elect_leaders(ask: ElectLeadersRequest, context: RequestContext) -> Deferred[ElectLeadersResponse]:
    """Answer when the leaders lead."""
    return context.decide(decide_elect_leaders, ask)
