"""ShareGroupDescribe (API key 77): share groups, described."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=77, versions="1", flexible="0+", listeners=("broker",))
class ShareGroupDescribeRequest:
    """Ask for the state, members and assignments of share groups (KIP-932)."""

    group_ids: tuple[str, ...] = wire("0+")
    include_authorized_operations: bool = wire("0+")


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid = wire("0+")
    topic_name: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@struct
class Assignment:
    """The partitions that a member has."""

    topic_partitions: tuple[TopicPartitions, ...] = wire("0+")


@struct
class Member:
    """A member: who it is, what it subscribes to and what it has."""

    member_id: str = wire("0+")
    rack_id: str | None = wire("0+", default=None)
    member_epoch: i32 = wire("0+")
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    subscribed_topic_names: tuple[str, ...] = wire("0+")
    assignment: Assignment = wire("0+")


@struct
class DescribedGroup:
    """A share group: its state, epochs and members."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    group_id: str = wire("0+")
    group_state: str = wire("0+")
    group_epoch: i32 = wire("0+")
    assignment_epoch: i32 = wire("0+")
    assignor_name: str = wire("0+")
    members: tuple[Member, ...] = wire("0+")
    authorized_operations: i32 = wire("0+", default=-2147483648)


@message(api_key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    """Describe each share group asked for, or say why it cannot be described."""

    throttle_time_ms: i32 = wire("0+", default=0)
    groups: tuple[DescribedGroup, ...] = wire("0+")
