"""BrokerHeartbeat: a broker says that it is alive, and what it wants."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


@handles(BrokerHeartbeatRequest)
def broker_heartbeat(
    ask: BrokerHeartbeatRequest, context: RequestContext
) -> Deferred[BrokerHeartbeatResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
