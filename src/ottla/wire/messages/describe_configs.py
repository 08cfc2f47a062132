"""DescribeConfigs (API key 32): the configs of resources."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DescribeConfigsResource:
    """A resource and the config keys wanted of it."""

    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")
    configuration_keys: tuple[str, ...] | None = wire("0+")


@message(api_key=32, versions="1-4", flexible="4+", listeners=("broker", "controller"))
class DescribeConfigsRequest:
    """Ask for the configs of some resources: the keys named, or all of them when null.

    v3 may ask for each config's documentation too.
    """

    resources: tuple[DescribeConfigsResource, ...] = wire("0+")
    include_synonyms: bool = wire("1+", default=False)
    include_documentation: bool = wire("3+", default=False)


@struct
class DescribeConfigsSynonym:
    """One of the places that can set a config; the first in the list wins."""

    name: str = wire("1+")
    value: str | None = wire("1+")
    source: i8 = wire("1+")


@struct
class DescribeConfigsResourceResult:
    """One config: its value, where it comes from, and what else could set it."""

    name: str = wire("0+")
    value: str | None = wire("0+")
    read_only: bool = wire("0+")
    config_source: i8 = wire("1+", default=-1, ignorable=True)
    is_sensitive: bool = wire("0+")
    synonyms: tuple[DescribeConfigsSynonym, ...] = wire("1+", ignorable=True)
    config_type: i8 = wire("3+", default=0, ignorable=True)
    documentation: str | None = wire("3+", default="", ignorable=True)


@struct
class DescribeConfigsResult:
    """The configs of one resource, or why they cannot be shown."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")
    configs: tuple[DescribeConfigsResourceResult, ...] = wire("0+")


@message(api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """Give each config's value and the place it comes from.

    The value of a sensitive config is null. v3 adds the type and the documentation of a config.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    results: tuple[DescribeConfigsResult, ...] = wire("0+")
