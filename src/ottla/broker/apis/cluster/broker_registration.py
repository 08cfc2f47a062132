"""BrokerRegistration: a broker becomes a member of the cluster, or comes back."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


@handles(BrokerRegistrationRequest)
def broker_registration(
    ask: BrokerRegistrationRequest, context: RequestContext
) -> Deferred[BrokerRegistrationResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
