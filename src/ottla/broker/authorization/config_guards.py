"""The guards of APIs about configs."""

from typing import Any, Final, NamedTuple

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import MESSAGES
from ottla.broker.authorization.sorting import sort_out
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply
from ottla.security.rights import CLUSTER, Operation, Right
from ottla.security.rights import ResourceType as Resource
from ottla.wire.apis import ApiKey
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import alter_configs as alter_messages
from ottla.wire.messages import incremental_alter_configs as incremental_messages
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class _Demand(NamedTuple):
    """On which resource a right is asked for, and the error if it is denied."""

    resource_type: Resource
    error_code: ErrorCode


_ON_CLUSTER: Final = _Demand(Resource.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_DEMANDS: Final = {
    ResourceType.TOPIC: _Demand(Resource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ResourceType.GROUP: _Demand(Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ResourceType.BROKER: _ON_CLUSTER,
    ResourceType.BROKER_LOGGER: _ON_CLUSTER,
    ResourceType.CLIENT_METRICS: _ON_CLUSTER,
}


def _find_denial(
    resource_type: int, name: str, operation: Operation, context: RequestContext
) -> ErrorCode | None:
    demand = _DEMANDS.get(resource_type)  # type: ignore[call-overload]  # a ResourceType is a number
    if demand is None:
        # The handler says that there is no such type.
        return None
    named = CLUSTER if demand is _ON_CLUSTER else name
    return None if context.allows(Right(operation, demand.resource_type), named) else demand.error_code


@guards(ApiKey.DESCRIBE_CONFIGS)
def describe_configs(ask: DescribeConfigsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each resource."""

    def refuse(resource: DescribeConfigsResource) -> DescribeConfigsResult | None:
        denial = _find_denial(
            resource.resource_type, resource.resource_name, Operation.DESCRIBE_CONFIGS, context
        )
        if denial is None:
            return None
        return DescribeConfigsResult(
            error_code=denial,
            error_message=MESSAGES[denial],
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )

    return sort_out(context, ask, serve, "resources", "results", refuse, DescribeConfigsResponse)


@guards(ApiKey.ALTER_CONFIGS)
def alter_configs(ask: AlterConfigsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each resource."""

    def refuse(resource: alter_messages.AlterConfigsResource) -> Any | None:
        return _refuse_change(resource, alter_messages.AlterConfigsResourceResponse, context)

    return sort_out(context, ask, serve, "resources", "responses", refuse, AlterConfigsResponse)


@guards(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def incremental_alter_configs(
    ask: IncrementalAlterConfigsRequest, context: RequestContext, serve: Serve
) -> Any:
    """Ask for each resource."""

    def refuse(resource: incremental_messages.AlterConfigsResource) -> Any | None:
        return _refuse_change(resource, incremental_messages.AlterConfigsResourceResponse, context)

    return sort_out(context, ask, serve, "resources", "responses", refuse, IncrementalAlterConfigsResponse)


def _refuse_change(resource: Any, response: type[Any], context: RequestContext) -> Any | None:
    denial = _find_denial(resource.resource_type, resource.resource_name, Operation.ALTER_CONFIGS, context)
    if denial is None:
        return None
    return response(
        error_code=denial,
        error_message=MESSAGES[denial],
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
