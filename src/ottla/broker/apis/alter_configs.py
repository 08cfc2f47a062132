"""AlterConfigs: the configs of resources are replaced as a whole."""

from operator import attrgetter

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@handles(
    AlterConfigsRequest,
    Cut("resources", "responses", key=attrgetter("resource_type", "resource_name")),
    elements_max=4 * RECORDS_MAX,
)
def alter_configs(ask: AlterConfigsRequest, context: RequestContext) -> Deferred[AlterConfigsResponse]:
    """Answer when the configs hold."""
    return context.ask_controller(ask)
