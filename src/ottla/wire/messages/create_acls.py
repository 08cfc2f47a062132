"""CreateAcls (API key 30): access rules are added."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AclCreation:
    """One rule: who, from where, may or may not do what to which resource."""

    resource_type: i8 = wire("0+")
    resource_name: str = wire("0+")
    resource_pattern_type: i8 = wire("1+", default=3)
    principal: str = wire("0+")
    host: str = wire("0+")
    operation: i8 = wire("0+")
    permission_type: i8 = wire("0+")


@message(api_key=30, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class CreateAclsRequest:
    """Add access rules. Each rule stands or falls on its own."""

    creations: tuple[AclCreation, ...] = wire("0+")


@struct
class AclCreationResult:
    """Whether one rule was added."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")


@message(api_key=30, versions="1-3", flexible="2+")
class CreateAclsResponse:
    """Say for each rule, in the order of the request, whether it was added."""

    throttle_time_ms: i32 = wire("0+", default=0)
    results: tuple[AclCreationResult, ...] = wire("0+")
