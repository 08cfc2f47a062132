"""DescribeShareGroupOffsets (API key 90): the start offsets of share groups."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DescribeShareGroupOffsetsRequestTopic:
    """A topic and the partitions asked about."""

    topic_name: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@struct
class DescribeShareGroupOffsetsRequestGroup:
    """A share group and the topics asked about."""

    group_id: str = wire("0+")
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None = wire("0+")


@message(api_key=90, versions="0-1", flexible="0+", listeners=("broker",))
class DescribeShareGroupOffsetsRequest:
    """Ask for the start offsets of share groups, in some topics or in all when null."""

    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = wire("0+")


@struct
class DescribeShareGroupOffsetsResponsePartition:
    """The start offset of one partition, or the error."""

    partition_index: i32 = wire("0+")
    start_offset: i64 = wire("0+")
    leader_epoch: i32 = wire("0+")
    lag: i64 = wire("1+", default=-1, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    """The start offsets in one topic."""

    topic_name: str = wire("0+")
    topic_id: Uuid = wire("0+")
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...] = wire("0+")


@struct
class DescribeShareGroupOffsetsResponseGroup:
    """The start offsets of one share group."""

    group_id: str = wire("0+")
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...] = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@message(api_key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """Give the start offsets of each share group.

    v1 adds the lag: how many records the group has still to deliver.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = wire("0+")
