"""ListConfigResources (API key 74): the resources that have configs."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=74, versions="0-1", flexible="0+", listeners=("broker",))
class ListConfigResourcesRequest:
    """List the client metrics subscriptions (v0), or the config resources of some types (v1+).

    No types means all of them.
    """

    resource_types: tuple[i8, ...] = wire("1+", default=())


@struct
class ConfigResource:
    """A resource; always a client metrics subscription in v0."""

    resource_name: str = wire("0+")
    resource_type: i8 = wire("1+", default=16, ignorable=True)


@message(api_key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """List the config resources by name and (v1+) type."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    config_resources: tuple[ConfigResource, ...] = wire("0+")
