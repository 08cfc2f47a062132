"""UnregisterBroker: a broker leaves the cluster for good."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@handles(UnregisterBrokerRequest)
def unregister_broker(
    ask: UnregisterBrokerRequest, context: RequestContext
) -> Deferred[UnregisterBrokerResponse]:
    """Answer when the broker is forgotten."""
    return context.ask_controller(ask)
