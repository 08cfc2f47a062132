"""ConsumerGroupHeartbeat (API key 68): a member joins, stays in or leaves a consumer group."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=68, versions="0-1", flexible="0+", listeners=("broker",))
class ConsumerGroupHeartbeatRequest:
    """Join a consumer group (epoch 0), stay in it (> 0) or leave it (-1, -2) (KIP-848).

    Null or -1 in a field means that it has not changed since the last heartbeat.
    From v1 on the member makes its own id, and may subscribe by a regular expression.
    """

    group_id: str = wire("0+")
    member_id: str = wire("0+")
    member_epoch: i32 = wire("0+")
    instance_id: str | None = wire("0+", default=None)
    rack_id: str | None = wire("0+", default=None)
    rebalance_timeout_ms: i32 = wire("0+", default=-1)
    subscribed_topic_names: tuple[str, ...] | None = wire("0+", default=None)
    subscribed_topic_regex: str | None = wire("1+", default=None)
    server_assignor: str | None = wire("0+", default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = wire("0+", default=None)


@struct
class Assignment:
    """The partitions that the member should now have."""

    topic_partitions: tuple[TopicPartitions, ...] = wire("0+")


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
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
