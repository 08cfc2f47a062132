"""ListOffsets (API key 2): offsets are looked up by time."""

from ottla.wire.declare import i8, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class ListOffsetsPartition:
    """One partition and the timestamp to look up."""

    partition_index: i32 = wire("0+")
    current_leader_epoch: i32 = wire("4+", default=-1, ignorable=True)
    timestamp: i64 = wire("0+")


@struct
class ListOffsetsTopic:
    """A topic and the partitions to look up."""

    name: str = wire("0+")
    partitions: tuple[ListOffsetsPartition, ...] = wire("0+")


@message(api_key=2, versions="1-11", flexible="6+", listeners=("broker",))
class ListOffsetsRequest:
    """Look up the offset of a timestamp, or of a special place in the log, in each partition.

    Negative timestamps name the places: -1 latest, -2 earliest, -3 largest timestamp (v7+),
    -4 earliest local (v8+), -5 latest tiered (v9+), -6 earliest not yet uploaded (v11+).
    v2 adds the isolation level, v4 the leader epoch, v10 a timeout for tiered storage.
    """

    replica_id: i32 = wire("0+")
    isolation_level: i8 = wire("2+", default=0)
    topics: tuple[ListOffsetsTopic, ...] = wire("0+")
    timeout_ms: i32 = wire("10+", default=0, ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    """The offset and timestamp found in one partition, or the error."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    timestamp: i64 = wire("1+", default=-1)
    offset: i64 = wire("1+", default=-1)
    leader_epoch: i32 = wire("4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    """The results of one topic's partitions."""

    name: str = wire("0+")
    partitions: tuple[ListOffsetsPartitionResponse, ...] = wire("0+")


@message(api_key=2, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    """Give the offset found in each partition, or -1 where there is none.

    v4 adds the leader epoch of the offset.
    """

    throttle_time_ms: i32 = wire("2+", default=0, ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...] = wire("0+")
