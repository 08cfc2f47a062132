"""BrokerRegistration: a broker becomes a member of the cluster, or comes back."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


@serves(
    BrokerRegistrationRequest,
    "0-4",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def broker_registration(
    ask: BrokerRegistrationRequest, context: RequestContext
) -> Deferred[BrokerRegistrationResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
