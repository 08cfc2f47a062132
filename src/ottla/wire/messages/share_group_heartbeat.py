"""ShareGroupHeartbeat (API key 76): a member joins, stays in or leaves a share group."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=76, versions="1", flexible="0+", listeners=("broker",))
class ShareGroupHeartbeatRequest:
    """Join a share group (epoch 0), stay in it (> 0) or leave it (-1) (KIP-932).

    A null field has not changed since the last heartbeat.
    """

    group_id: str = wire("0+")
    member_id: str = wire("0+")
    member_epoch: i32 = wire("0+")
    rack_id: str | None = wire("0+", default=None)
    subscribed_topic_names: tuple[str, ...] | None = wire("0+", default=None)


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@struct
class Assignment:
    """The partitions that the member should now read, along with others."""

    topic_partitions: tuple[TopicPartitions, ...] = wire("0+")


@message(api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """Give a member its epoch and, where it changed, its assignment.

    A null assignment means: keep what you have.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    member_id: str | None = wire("0+", default=None)
    member_epoch: i32 = wire("0+")
    heartbeat_interval_ms: i32 = wire("0+")
    assignment: Assignment | None = wire("0+", default=None)
