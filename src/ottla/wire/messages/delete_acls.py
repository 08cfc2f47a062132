"""DeleteAcls (API key 31): access rules are removed."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DeleteAclsFilter:
    """A pattern of rules to remove; null matches everything."""

    resource_type_filter: i8 = wire("0+")
    resource_name_filter: str | None = wire("0+")
    pattern_type_filter: i8 = wire("1+", default=3)
    principal_filter: str | None = wire("0+")
    host_filter: str | None = wire("0+")
    operation: i8 = wire("0+")
    permission_type: i8 = wire("0+")


@message(api_key=31, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class DeleteAclsRequest:
    """Remove all access rules that match any of the filters."""

    filters: tuple[DeleteAclsFilter, ...] = wire("0+")


@struct
class DeleteAclsMatchingAcl:
    """A rule that matched, and whether it was removed."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")
    pattern_type: i8 = wire("1+", default=3)
    principal: str = wire("0+")
    host: str = wire("0+")
    operation: i8 = wire("0+")
    permission_type: i8 = wire("0+")


@struct
class DeleteAclsFilterResult:
    """What one filter matched, or why it was refused."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = wire("0+")


@message(api_key=31, versions="1-3", flexible="2+")
class DeleteAclsResponse:
    """List for each filter, in the order of the request, the rules that matched it."""

    throttle_time_ms: i32 = wire("0+", default=0)
    filter_results: tuple[DeleteAclsFilterResult, ...] = wire("0+")
