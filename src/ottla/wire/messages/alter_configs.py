"""AlterConfigs (API key 33): the whole set of a resource's configs is replaced."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AlterableConfig:
    """One config override."""

    name: str = wire("0+", map_key=True)
    value: str | None = wire("0+")


@struct
class AlterConfigsResource:
    """One resource and the full set of overrides it should have."""

    resource_type: i8 = wire("0+", map_key=True)
    resource_name: str = wire("0+", map_key=True)
    configs: tuple[AlterableConfig, ...] = wire("0+")


@message(api_key=33, versions="0-2", flexible="2+", listeners=("broker", "controller"))
class AlterConfigsRequest:
    """Replace all config overrides of some resources, or only check them.

    What the request leaves out is reset to its default. IncrementalAlterConfigs changes single keys.
    """

    resources: tuple[AlterConfigsResource, ...] = wire("0+")
    validate_only: bool = wire("0+")


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """Say for each resource whether its configs were replaced."""

    throttle_time_ms: i32 = wire("0+", default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = wire("0+")
