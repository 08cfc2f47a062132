"""IncrementalAlterConfigs (API key 44): single configs of resources are changed."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AlterableConfig:
    """One config to set, to reset, or to add to or take from where it is a list."""

    name: str = wire("0+", map_key=True)
    config_operation: i8 = wire("0+", map_key=True)
    value: str | None = wire("0+")


@struct
class AlterConfigsResource:
    """A resource and the changes to its configs."""

    resource_type: i8 = wire("0+", map_key=True)
    resource_name: str = wire("0+", map_key=True)
    configs: tuple[AlterableConfig, ...] = wire("0+")


@message(api_key=44, versions="0-1", flexible="1+", listeners=("broker", "controller"))
class IncrementalAlterConfigsRequest:
    """Change single configs of some resources, or only check the change."""

    resources: tuple[AlterConfigsResource, ...] = wire("0+")
    validate_only: bool = wire("0+")


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """Say for each resource whether its configs were changed."""

    throttle_time_ms: i32 = wire("0+", default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = wire("0+")
