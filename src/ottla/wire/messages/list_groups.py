"""ListGroups (API key 16): the groups of a coordinator."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=16, versions="0-5", flexible="3+", listeners=("broker",))
class ListGroupsRequest:
    """List the groups that a broker coordinates.

    v4 can filter them by state, v5 by type; no filter means all.
    """

    states_filter: tuple[str, ...] = wire("4+", default=())
    types_filter: tuple[str, ...] = wire("5+", default=())


@struct
class ListedGroup:
    """One group."""

    group_id: str = wire("0+")
    protocol_type: str = wire("0+")
    group_state: str = wire("4+", default="", ignorable=True)
    group_type: str = wire("5+", default="", ignorable=True)


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """List the groups with their protocol type and, from v4 and v5 on, their state and type."""

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    groups: tuple[ListedGroup, ...] = wire("0+")
