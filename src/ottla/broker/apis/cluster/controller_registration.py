"""ControllerRegistration: a controller says where it listens and what it supports."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


@serves(
    ControllerRegistrationRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def controller_registration(
    ask: ControllerRegistrationRequest, context: RequestContext
) -> Deferred[ControllerRegistrationResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
