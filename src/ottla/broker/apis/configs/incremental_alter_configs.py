"""IncrementalAlterConfigs: single configs are set, reset, added to and taken from.

Configs go to the controller. Log levels stay here: they are this node's, and hold until it stops.
"""

from operator import attrgetter
from typing import Final

from ottla.broker.deferred import Deferred
from ottla.broker.handling.log_levels import change_log_levels
from ottla.broker.handling.own_configs import find_refused
from ottla.broker.node import Broker, BrokerContext
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import of_each_resource
from ottla.broker.serving.handlers import BOTH, serves
from ottla.metadata.configs.alter import Change
from ottla.metadata.configs.errors import ChangeRefused
from ottla.metadata.configs.layers import LISTENER_SECURITY_CONFIGS
from ottla.metadata.configs.synonyms import find_listener_base
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import Operation
from ottla.wire.config_kinds import ResourceType
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_SET: Final = 0


@serves(
    IncrementalAlterConfigsRequest,
    "0-1",
    *of_each_resource(Operation.ALTER_CONFIGS, "responses"),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("resources", "responses", key=attrgetter("resource_type", "resource_name")),),
    elements_max=4 * RECORDS_MAX,
)
def incremental_alter_configs(
    ask: IncrementalAlterConfigsRequest, context: RequestContext
) -> Deferred[IncrementalAlterConfigsResponse]:
    """Answer when the configs hold."""
    loggers = [one for one in ask.resources if one.resource_type == ResourceType.BROKER_LOGGER]
    others = tuple(one for one in ask.resources if one.resource_type != ResourceType.BROKER_LOGGER)
    # These are not the controller's, which is where other changes are noted.
    context.node.audit.changed(context, replace(ask, resources=tuple(loggers)))
    answers = tuple(_alter_loggers(one, context.node.node_id, ask.validate_only) for one in loggers)
    if isinstance(context, BrokerContext):
        refused = find_refused(others, context, replaces=False)
        answers += tuple(_result(others[place], error) for place, error in refused.items())
        others = tuple(one for place, one in enumerate(others) if place not in refused)
    if isinstance(context, BrokerContext) and context.broker.tls is not None:
        faults = {id(one): _find_tls_fault(one, context.broker) for one in others}
        answers += tuple(_tls_refused(one, fault) for one in others if (fault := faults[id(one)]) is not None)
        others = tuple(one for one in others if faults[id(one)] is None)
    reply = context.ask_controller(replace(ask, resources=others))
    return reply.then(lambda response: replace(response, responses=(*response.responses, *answers)))


def _find_tls_fault(resource: AlterConfigsResource, broker: Broker) -> str | None:
    """Return why this broker could not use the keys or certificates that a change names."""
    if resource.resource_type != ResourceType.BROKER or resource.resource_name != str(broker.node_id):
        return None
    changes = {
        config.name: config.value if config.config_operation == _SET else None
        for config in resource.configs
        if find_listener_base(config.name) in LISTENER_SECURITY_CONFIGS
    }
    if not changes or broker.tls is None:
        return None
    overrides = {**broker.configs.layers.dynamic_broker, **changes}
    usable = {name: text for name, text in overrides.items() if text is not None}
    return broker.tls.find_fault(broker.configs.with_dynamic(broker.configs.layers.dynamic_default, usable))


def _tls_refused(resource: AlterConfigsResource, fault: str) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"Invalid value for the certificates of this broker: {fault}",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _alter_loggers(
    resource: AlterConfigsResource, node_id: int, only_check: bool
) -> AlterConfigsResourceResponse:
    changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
    try:
        change_log_levels(resource.resource_name, node_id, changes, only_check=only_check)
    except ChangeRefused as refused:
        return _result(resource, refused)
    return _result(resource, None)


def _result(resource: AlterConfigsResource, refused: ChangeRefused | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refused is None else refused.error_code,
        error_message=None if refused is None else refused.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
