"""SyncGroup (API key 14): the leader of a classic group hands out the assignment."""

from typing import Final

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode

PROTOCOL_FROM: Final = 5


@struct
class SyncGroupRequestAssignment:
    """A member and its assignment, as opaque bytes."""

    member_id: str = wire("0+")
    assignment: bytes = wire("0+")


@message(api_key=14, versions="0-5", flexible="4+", listeners=("broker",))
class SyncGroupRequest:
    """Ask for one's assignment in a classic group; the group's leader brings all of them.

    v3 adds the instance id of static members, v5 the protocol, so that a mismatch is noticed.
    """

    group_id: str = wire("0+")
    generation_id: i32 = wire("0+")
    member_id: str = wire("0+")
    group_instance_id: str | None = wire("3+", default=None)
    protocol_type: str | None = wire("5+", default=None, ignorable=True)
    protocol_name: str | None = wire("5+", default=None, ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = wire("0+")


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """Give the member its assignment, as opaque bytes.

    v5 adds the protocol of the group.
    """

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    protocol_type: str | None = wire("5+", default=None, ignorable=True)
    protocol_name: str | None = wire("5+", default=None, ignorable=True)
    assignment: bytes = wire("0+")
