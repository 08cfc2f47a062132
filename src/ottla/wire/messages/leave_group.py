"""LeaveGroup (API key 13): members leave a classic group."""

from typing import Final

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode

SEVERAL_FROM: Final = 3


@struct
class MemberIdentity:
    """A member that leaves, by its id or by its instance id (v3+)."""

    member_id: str = wire("3+")
    group_instance_id: str | None = wire("3+", default=None)
    reason: str | None = wire("5+", default=None, ignorable=True)


@message(api_key=13, versions="0-5", flexible="4+", listeners=("broker",))
class LeaveGroupRequest:
    """Leave a classic group: one member (v0-v2) or several at once (v3+).

    v3+ can remove a static member by its instance id. v5 adds a reason for people to read.
    """

    group_id: str = wire("0+")
    member_id: str = wire("0-2", default="")
    members: tuple[MemberIdentity, ...] = wire("3+", default=())


@struct
class MemberResponse:
    """Whether one member left (v3+)."""

    member_id: str = wire("3+")
    group_instance_id: str | None = wire("3+")
    error_code: ErrorCode = wire("3+", default=ErrorCode.NONE)


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """Say whether the member left, and (v3+) the same for each member."""

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    members: tuple[MemberResponse, ...] = wire("3+", default=())
