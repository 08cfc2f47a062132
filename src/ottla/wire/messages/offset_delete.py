"""OffsetDelete (API key 47): a group forgets offsets."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class OffsetDeleteRequestPartition:
    """One partition whose offset is to be deleted."""

    partition_index: i32 = wire("0+")


@struct
class OffsetDeleteRequestTopic:
    """A topic and the partitions whose offsets are to be deleted."""

    name: str = wire("0+", map_key=True)
    partitions: tuple[OffsetDeleteRequestPartition, ...] = wire("0+")


@message(api_key=47, versions="0", listeners=("broker",))
class OffsetDeleteRequest:
    """Delete a group's offsets of topics to which it is no longer subscribed.

    The API has no flexible version.
    """

    group_id: str = wire("0+")
    topics: tuple[OffsetDeleteRequestTopic, ...] = wire("0+")


@struct
class OffsetDeleteResponsePartition:
    """Whether one partition's offset was deleted."""

    partition_index: i32 = wire("0+", map_key=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@struct
class OffsetDeleteResponseTopic:
    """The results of one topic's partitions."""

    name: str = wire("0+", map_key=True)
    partitions: tuple[OffsetDeleteResponsePartition, ...] = wire("0+")


@message(api_key=47, versions="0")
class OffsetDeleteResponse:
    """Say for each partition whether its offset was deleted."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    throttle_time_ms: i32 = wire("0+", default=0, ignorable=True)
    topics: tuple[OffsetDeleteResponseTopic, ...] = wire("0+")
