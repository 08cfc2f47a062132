"""ConsumerGroupDescribe (API key 69): consumer groups of the new protocol, described."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=69, versions="0-1", flexible="0+", listeners=("broker",))
class ConsumerGroupDescribeRequest:
    """Ask for the state, members and assignments of consumer groups (KIP-848)."""

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
    """The partitions that a member has, or should have."""

    topic_partitions: tuple[TopicPartitions, ...] = wire("0+")


@struct
class Member:
    """A member: who it is, what it subscribes to, what it has and what it should have."""

    member_id: str = wire("0+")
    instance_id: str | None = wire("0+", default=None)
    rack_id: str | None = wire("0+", default=None)
    member_epoch: i32 = wire("0+")
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    subscribed_topic_names: tuple[str, ...] = wire("0+")
    subscribed_topic_regex: str | None = wire("0+", default=None)
    assignment: Assignment = wire("0+")
    target_assignment: Assignment = wire("0+")
    member_type: i8 = wire("1+", default=-1, ignorable=True)


@struct
class DescribedGroup:
    """A consumer group: its state, epochs and members."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    group_id: str = wire("0+")
    group_state: str = wire("0+")
    group_epoch: i32 = wire("0+")
    assignment_epoch: i32 = wire("0+")
    assignor_name: str = wire("0+")
    members: tuple[Member, ...] = wire("0+")
    authorized_operations: i32 = wire("0+", default=-2147483648)


@message(api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """Describe each consumer group asked for, or say why it cannot be described.

    v1 also tells whether a member speaks the classic or the new protocol.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    groups: tuple[DescribedGroup, ...] = wire("0+")
