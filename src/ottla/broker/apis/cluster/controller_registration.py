"""ControllerRegistration: a controller says where it listens and what it supports."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


@handles(ControllerRegistrationRequest)
def controller_registration(
    ask: ControllerRegistrationRequest, context: RequestContext
) -> Deferred[ControllerRegistrationResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
