"""Heartbeat (API key 12): a member of a classic group stays alive."""

from ottla.wire.declare import i32, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=12, versions="0-4", flexible="4+", listeners=("broker",))
class HeartbeatRequest:
    """Tell the coordinator that a member of a classic group lives.

    v3 adds the instance id of static members.
    """

    group_id: str = wire("0+")
    generation_id: i32 = wire("0+")
    member_id: str = wire("0+")
    group_instance_id: str | None = wire("3+", default=None)


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """Say that all is well, or that the member must join again."""

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
