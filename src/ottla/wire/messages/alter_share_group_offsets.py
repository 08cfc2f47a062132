"""AlterShareGroupOffsets (API key 91): the start offsets of a share group are set."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AlterShareGroupOffsetsRequestPartition:
    """The new start offset of one partition."""

    partition_index: i32 = wire("0+")
    start_offset: i64 = wire("0+")


@struct
class AlterShareGroupOffsetsRequestTopic:
    """A topic and the new start offsets of its partitions."""

    topic_name: str = wire("0+", map_key=True)
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...] = wire("0+")


@message(api_key=91, versions="0", flexible="0+", listeners=("broker",))
class AlterShareGroupOffsetsRequest:
    """Set the offsets from which an empty share group should go on reading."""

    group_id: str = wire("0+")
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...] = wire("0+")


@struct
class AlterShareGroupOffsetsResponsePartition:
    """Whether one partition's start offset was set."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@struct
class AlterShareGroupOffsetsResponseTopic:
    """The results of one topic's partitions."""

    topic_name: str = wire("0+", map_key=True)
    topic_id: Uuid = wire("0+")
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...] = wire("0+")


@message(api_key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    """Say for each partition whether its start offset was set."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...] = wire("0+")
