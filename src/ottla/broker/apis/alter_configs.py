"""AlterConfigs: the configs of resources are replaced as a whole."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@handles(AlterConfigsRequest)
def alter_configs(ask: AlterConfigsRequest, context: RequestContext) -> Deferred[AlterConfigsResponse]:
    """Answer when the configs hold."""
    return context.ask_controller(ask)
