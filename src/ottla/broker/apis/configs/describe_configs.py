"""DescribeConfigs: what holds for topics, brokers, groups and subscriptions, and where it comes from."""

from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.handling.log_levels import log_levels
from ottla.broker.serving.context import RequestContext, ServingNode
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import of_each_resource
from ottla.broker.serving.handlers import BOTH, serves
from ottla.metadata.configs.describe import (
    Wanted,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
)
from ottla.metadata.image import ConfigResource
from ottla.model.topic_names import find_topic_name_fault
from ottla.security.rights import Operation
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

Described = tuple[DescribeConfigsResourceResult, ...]


class _Refused(Exception):
    def __init__(self, error_code: ErrorCode, message: str = "") -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


@serves(
    DescribeConfigsRequest,
    "1-4",
    *of_each_resource(Operation.DESCRIBE_CONFIGS, "results"),
    listeners=BOTH,
    cuts=(Cut("resources", "results", at_once=8),),
)
def describe_configs(ask: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    """Answer every resource on its own."""
    return DescribeConfigsResponse(
        results=tuple(_describe(resource, ask, context.node) for resource in ask.resources)
    )


def _describe(
    resource: DescribeConfigsResource, ask: DescribeConfigsRequest, node: ServingNode
) -> DescribeConfigsResult:
    names = resource.configuration_keys
    # No names at all are as good as null: all configs are wanted.
    wanted = Wanted(frozenset(names) if names else None, ask.include_synonyms, ask.include_documentation)
    try:
        configs = _find_describer(resource.resource_type)(resource.resource_name, node, wanted)
    except _Refused as refusal:
        return _result(resource, refusal.error_code, refusal.message, ())
    return _result(resource, ErrorCode.NONE, "", configs)


def _result(
    resource: DescribeConfigsResource, error_code: ErrorCode, message: str, configs: Described
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error_code,
        # A text, also when nothing is wrong: so it is in Kafka.
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _find_describer(resource_type: int) -> Callable[[str, ServingNode, Wanted], Described]:
    describer = _DESCRIBERS.get(resource_type)
    if describer is None:
        reason = f"configs of resource type {resource_type} cannot be described"
        raise _Refused(ErrorCode.INVALID_REQUEST, reason)
    return describer


def _describe_topic(name: str, node: ServingNode, wanted: Wanted) -> Described:
    fault = find_topic_name_fault(name)
    if fault is not None:
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if node.image.topics.find(name) is None:
        raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return describe_topic(node.configs, node.image.topic_config(name), wanted)


def _describe_broker(name: str, node: ServingNode, wanted: Wanted) -> Described:
    if not name:
        return describe_broker_defaults(node.configs, wanted)
    if _parse_broker_id(name) != node.node_id:
        reason = f"Unexpected broker id, expected {node.node_id} or empty string, but received {name}"
        raise _Refused(ErrorCode.INVALID_REQUEST, reason)
    return describe_broker(node.configs, wanted)


def _describe_loggers(name: str, node: ServingNode, wanted: Wanted) -> Described:
    if not name:
        raise _Refused(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if _parse_broker_id(name) != node.node_id:
        reason = f"Unexpected broker id, expected {node.node_id} but received {name}"
        raise _Refused(ErrorCode.INVALID_REQUEST, reason)
    return describe_loggers(log_levels(), wanted)


def _describe_group(name: str, node: ServingNode, wanted: Wanted) -> Described:
    if not name:
        raise _Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return describe_group(node.configs, node.image.group_config(name), wanted)


def _describe_client_metrics(name: str, node: ServingNode, wanted: Wanted) -> Described:
    if not name:
        raise _Refused(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    resource = ConfigResource(ResourceType.CLIENT_METRICS, name)
    return describe_client_metrics(node.image.configs.get(resource, {}), wanted)


def _parse_broker_id(name: str) -> int:
    if not name.removeprefix("-").isdecimal() or len(name) > 10:
        raise _Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return int(name)


_DESCRIBERS: Final[Mapping[int, Callable[[str, ServingNode, Wanted], Described]]] = {
    ResourceType.TOPIC: _describe_topic,
    ResourceType.BROKER: _describe_broker,
    ResourceType.BROKER_LOGGER: _describe_loggers,
    ResourceType.CLIENT_METRICS: _describe_client_metrics,
    ResourceType.GROUP: _describe_group,
}
