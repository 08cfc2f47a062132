"""DeleteRecords (API key 21): the head of a partition's log is given up."""

from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DeleteRecordsPartition:
    """One partition and the offset before which all records are to be deleted."""

    partition_index: i32 = wire("0+")
    offset: i64 = wire("0+")


@struct
class DeleteRecordsTopic:
    """A topic and the partitions to shorten."""

    name: str = wire("0+")
    partitions: tuple[DeleteRecordsPartition, ...] = wire("0+")


@message(api_key=21, versions="0-2", flexible="2+", listeners=("broker",))
class DeleteRecordsRequest:
    """Delete the records before an offset, by moving the start of the log.

    Offset -1 means the high watermark. Only a partition's leader can answer.
    """

    topics: tuple[DeleteRecordsTopic, ...] = wire("0+")
    timeout_ms: i32 = wire("0+")


@struct
class DeleteRecordsPartitionResult:
    """The new low watermark of one partition, or the error."""

    partition_index: i32 = wire("0+", map_key=True)
    low_watermark: i64 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@struct
class DeleteRecordsTopicResult:
    """The results of one topic's partitions."""

    name: str = wire("0+", map_key=True)
    partitions: tuple[DeleteRecordsPartitionResult, ...] = wire("0+")


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """Give the new low watermark of each partition."""

    throttle_time_ms: i32 = wire("0+", default=0)
    topics: tuple[DeleteRecordsTopicResult, ...] = wire("0+")
