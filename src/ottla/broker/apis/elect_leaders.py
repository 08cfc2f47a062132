"""ElectLeaders: partitions get back their preferred leaders, or any leader at all."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


@handles(ElectLeadersRequest)
def elect_leaders(ask: ElectLeadersRequest, context: RequestContext) -> Deferred[ElectLeadersResponse]:
    """Answer when the leaders lead."""
    return context.ask_controller(ask)
