"""DeleteGroups (API key 42): groups are deleted with their offsets."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=42, versions="0-2", flexible="2+", listeners=("broker",))
class DeleteGroupsRequest:
    """Delete groups and their committed offsets. Only groups without members can go."""

    group_names: tuple[str, ...] = wire("0+")


@struct
class DeletableGroupResult:
    """What became of one group."""

    group_id: str = wire("0+", map_key=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@message(api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """Say for each group whether it was deleted."""

    throttle_time_ms: i32 = wire("0+", default=0)
    results: tuple[DeletableGroupResult, ...] = wire("0+")
