"""DescribeAcls (API key 29): access rules, listed by a filter."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=29, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class DescribeAclsRequest:
    """Ask for the access rules that match a filter; null matches everything."""

    resource_type_filter: i8 = wire("0+")
    resource_name_filter: str | None = wire("0+")
    pattern_type_filter: i8 = wire("1+", default=3)
    principal_filter: str | None = wire("0+")
    host_filter: str | None = wire("0+")
    operation: i8 = wire("0+")
    permission_type: i8 = wire("0+")


@struct
class AclDescription:
    """One rule: who, from where, may or may not do what."""

    principal: str = wire("0+")
    host: str = wire("0+")
    operation: i8 = wire("0+")
    permission_type: i8 = wire("0+")


@struct
class DescribeAclsResource:
    """A resource pattern and the rules that apply to it."""

    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")
    pattern_type: i8 = wire("1+", default=3)
    acls: tuple[AclDescription, ...] = wire("0+")


@message(api_key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse:
    """List the rules that match, grouped by resource."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    resources: tuple[DescribeAclsResource, ...] = wire("0+")
