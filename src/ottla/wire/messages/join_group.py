"""JoinGroup (API key 11): a member joins a classic group."""

from typing import Final

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode

NO_PROTOCOL_FROM: Final = 7


@struct
class JoinGroupRequestProtocol:
    """A protocol that the member can use, with its metadata for the group's leader."""

    name: str = wire("0+", map_key=True)
    metadata: bytes = wire("0+")


@message(api_key=11, versions="0-9", flexible="6+", listeners=("broker",))
class JoinGroupRequest:
    """Join a classic group, or join again for its next generation.

    v1 adds the rebalance timeout. From v4 on a new member is first told its id and must ask again with it.
    v5 adds the instance id of static members, v8 a reason for people to read.
    """

    group_id: str = wire("0+")
    session_timeout_ms: i32 = wire("0+")
    rebalance_timeout_ms: i32 = wire("1+", default=-1, ignorable=True)
    member_id: str = wire("0+")
    group_instance_id: str | None = wire("5+", default=None)
    protocol_type: str = wire("0+")
    protocols: tuple[JoinGroupRequestProtocol, ...] = wire("0+")
    reason: str | None = wire("8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    """A member and its metadata for the chosen protocol."""

    member_id: str = wire("0+")
    group_instance_id: str | None = wire("5+", default=None, ignorable=True)
    metadata: bytes = wire("0+")


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """Answer when all members have joined: the generation, the protocol and the leader.

    Only the leader gets the list of members. v9 tells a returning leader to leave the assignment as it is.
    """

    throttle_time_ms: i32 = wire("2+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    generation_id: i32 = wire("0+", default=-1)
    protocol_type: str | None = wire("7+", default=None, ignorable=True)
    protocol_name: str | None = wire("0+", nullable="7+")
    leader: str = wire("0+")
    skip_assignment: bool = wire("9+", default=False)
    member_id: str = wire("0+")
    members: tuple[JoinGroupResponseMember, ...] = wire("0+")
