"""IncrementalAlterConfigs: single configs are set, reset, added to and taken from.

Configs go to the controller. Log levels stay here: they are this node's, and hold until it stops.
"""

from operator import attrgetter

from ottla.broker.deferred import Deferred
from ottla.broker.log_levels import change_log_levels
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.metadata.configs.alter import Change
from ottla.metadata.configs.errors import ChangeRefused
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.wire.config_kinds import ResourceType
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@handles(
    IncrementalAlterConfigsRequest,
    Cut("resources", "responses", key=attrgetter("resource_type", "resource_name")),
    elements_max=4 * RECORDS_MAX,
)
def incremental_alter_configs(
    ask: IncrementalAlterConfigsRequest, context: RequestContext
) -> Deferred[IncrementalAlterConfigsResponse]:
    """Answer when the configs hold."""
    loggers = [one for one in ask.resources if one.resource_type == ResourceType.BROKER_LOGGER]
    others = tuple(one for one in ask.resources if one.resource_type != ResourceType.BROKER_LOGGER)
    answers = tuple(_alter_loggers(one, context.node.node_id, ask.validate_only) for one in loggers)
    reply = context.ask_controller(replace(ask, resources=others))
    return reply.then(lambda response: replace(response, responses=(*response.responses, *answers)))


def _alter_loggers(
    resource: AlterConfigsResource, node_id: int, only_check: bool
) -> AlterConfigsResourceResponse:
    changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
    error_code, message = ErrorCode.NONE, None
    try:
        change_log_levels(resource.resource_name, node_id, changes, only_check=only_check)
    except ChangeRefused as refused:
        error_code, message = refused.error_code, refused.message
    return AlterConfigsResourceResponse(
        error_code=error_code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
