"""DescribeGroups (API key 15): classic groups, described."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=15, versions="0-6", flexible="5+", listeners=("broker",))
class DescribeGroupsRequest:
    """Ask for the state and members of classic groups.

    v3 may ask what the client is allowed to do with each group.
    """

    groups: tuple[str, ...] = wire("0+")
    include_authorized_operations: bool = wire("3+", default=False)


@struct
class DescribedGroupMember:
    """A member, with its subscription and assignment as opaque bytes."""

    member_id: str = wire("0+")
    group_instance_id: str | None = wire("4+", default=None, ignorable=True)
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    member_metadata: bytes = wire("0+")
    member_assignment: bytes = wire("0+")


@struct
class DescribedGroup:
    """A classic group: its state, protocol and members."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("6+", default=None)
    group_id: str = wire("0+")
    group_state: str = wire("0+")
    protocol_type: str = wire("0+")
    protocol_data: str = wire("0+")
    members: tuple[DescribedGroupMember, ...] = wire("0+")
    authorized_operations: i32 = wire("3+", default=-2147483648)


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """Describe each group asked for, or say why it cannot be described.

    An unknown group has the state Dead and no error (v0-v5), or GROUP_ID_NOT_FOUND (v6+).
    v4 adds the instance ids of static members.
    """

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    groups: tuple[DescribedGroup, ...] = wire("0+")
