"""What `__consumer_offsets` keeps of a classic group."""

from ottla.wire.declare import i32, i64, message, struct, wire


@message(api_key=2, versions="0")
class GroupMetadataKey:
    """The key of a classic group's state."""

    group: str = wire("0")


@struct
class MemberMetadata:
    """A member of a classic group, with its subscription and assignment as opaque bytes."""

    member_id: str = wire("0+")
    group_instance_id: str | None = wire("3+", default=None, ignorable=True)
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    rebalance_timeout: i32 = wire("1+", default=-1, ignorable=True)
    session_timeout: i32 = wire("0+")
    subscription: bytes = wire("0+")
    assignment: bytes = wire("0+")


@message(api_key=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """Record a classic group's generation, protocol and leader, and its members with assignments.

    v3 is written. An empty protocol type with generation 0 is a group that only stores offsets.
    v1 adds the rebalance timeout, v2 the time of the last change of state, v3 instance ids.
    """

    protocol_type: str = wire("0+")
    generation: i32 = wire("0+")
    protocol: str | None = wire("0+")
    leader: str | None = wire("0+")
    current_state_timestamp: i64 = wire("2+", default=-1, ignorable=True)
    members: tuple[MemberMetadata, ...] = wire("0+")
