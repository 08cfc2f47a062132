"""OffsetForLeaderEpoch (API key 23): where a leader epoch ends in a leader's log."""

from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class OffsetForLeaderPartition:
    """One partition and the epoch whose end is wanted."""

    partition: i32 = wire("0+")
    current_leader_epoch: i32 = wire("2+", default=-1, ignorable=True)
    leader_epoch: i32 = wire("0+")


@struct
class OffsetForLeaderTopic:
    """A topic and the partitions asked about."""

    topic: str = wire("0+", map_key=True)
    partitions: tuple[OffsetForLeaderPartition, ...] = wire("0+")


@message(api_key=23, versions="2-4", flexible="4+", listeners=("broker",))
class OffsetForLeaderEpochRequest:
    """Ask where a leader epoch ends in the leader's log, to find out where two logs part.

    v3 adds who asks: a replica, or -1 for a consumer.
    """

    replica_id: i32 = wire("3+", default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...] = wire("0+")


@struct
class EpochEndOffset:
    """An epoch and where it ends; both are -1 when unknown."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    partition: i32 = wire("0+")
    leader_epoch: i32 = wire("1+", default=-1, ignorable=True)
    end_offset: i64 = wire("0+", default=-1)


@struct
class OffsetForLeaderTopicResult:
    """The results of one topic's partitions."""

    topic: str = wire("0+", map_key=True)
    partitions: tuple[EpochEndOffset, ...] = wire("0+")


@message(api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """Give for each partition the largest known epoch not above the one asked for, and its end."""

    throttle_time_ms: i32 = wire("2+", default=0, ignorable=True)
    topics: tuple[OffsetForLeaderTopicResult, ...] = wire("0+")
