"""AlterConfigs: the configs of resources are replaced as a whole."""

from operator import attrgetter

from ottla.broker.deferred import Deferred
from ottla.broker.handling.own_configs import find_refused
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import of_each_resource
from ottla.broker.serving.handlers import BOTH, serves
from ottla.broker.serving.served_apis import Listener
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import Operation
from ottla.wire.declare import replace
from ottla.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


@serves(
    AlterConfigsRequest,
    "0-2",
    *of_each_resource(Operation.ALTER_CONFIGS, "responses"),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("resources", "responses", key=attrgetter("resource_type", "resource_name")),),
    elements_max=4 * RECORDS_MAX,
)
def alter_configs(ask: AlterConfigsRequest, context: RequestContext) -> Deferred[AlterConfigsResponse]:
    """Answer when the configs hold."""
    if context.listener is Listener.CONTROLLER:
        return context.ask_controller(ask)
    refused = find_refused(ask.resources, context, replaces=True)
    answers = tuple(
        AlterConfigsResourceResponse(
            error_code=error.error_code,
            error_message=error.message,
            resource_type=ask.resources[place].resource_type,
            resource_name=ask.resources[place].resource_name,
        )
        for place, error in refused.items()
    )
    others = tuple(one for place, one in enumerate(ask.resources) if place not in refused)
    reply = context.ask_controller(replace(ask, resources=others))
    return reply.then(lambda response: replace(response, responses=(*response.responses, *answers)))
