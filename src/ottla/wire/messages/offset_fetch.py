"""OffsetFetch (API key 9): a group's stored offsets."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode

GROUP_ERROR_FROM: Final = 2
SEVERAL_GROUPS_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10


@struct
class OffsetFetchRequestTopic:
    """A topic and the partitions asked about (v1-v7)."""

    name: str = wire("0-7")
    partition_indexes: tuple[i32, ...] = wire("0-7")


@struct
class OffsetFetchRequestTopics:
    """A topic and the partitions asked about, within a group (v8+)."""

    name: str = wire("8-9", default="", ignorable=True)
    topic_id: Uuid = wire("10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: tuple[i32, ...] = wire("8+")


@struct
class OffsetFetchRequestGroup:
    """A group and the topics asked about (v8+)."""

    group_id: str = wire("8+")
    member_id: str | None = wire("9+", default=None, ignorable=True)
    member_epoch: i32 = wire("9+", default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = wire("8+")


@message(api_key=9, versions="1-10", flexible="6+", listeners=("broker",))
class OffsetFetchRequest:
    """Ask for the stored offsets of one group (v1-v7) or of several (v8+).

    From v2 on null topics mean all. v7 can ask to wait for open transactions. v9 adds the member's id and
    epoch, v10 names topics by id instead of by name.
    """

    group_id: str = wire("0-7", default="")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = wire("0-7", default=(), nullable="2-7")
    groups: tuple[OffsetFetchRequestGroup, ...] = wire("8+", default=())
    require_stable: bool = wire("7+", default=False)


@struct
class OffsetFetchResponsePartition:
    """The stored offset of one partition (v1-v7)."""

    partition_index: i32 = wire("0-7")
    committed_offset: i64 = wire("0-7")
    committed_leader_epoch: i32 = wire("5-7", default=-1, ignorable=True)
    metadata: str | None = wire("0-7")
    error_code: ErrorCode = wire("0-7", default=ErrorCode.NONE)


@struct
class OffsetFetchResponseTopic:
    """The stored offsets of one topic (v1-v7)."""

    name: str = wire("0-7")
    partitions: tuple[OffsetFetchResponsePartition, ...] = wire("0-7")


@struct
class OffsetFetchResponsePartitions:
    """The stored offset of one partition, within a group (v8+)."""

    partition_index: i32 = wire("8+")
    committed_offset: i64 = wire("8+")
    committed_leader_epoch: i32 = wire("8+", default=-1, ignorable=True)
    metadata: str | None = wire("8+")
    error_code: ErrorCode = wire("8+", default=ErrorCode.NONE)


@struct
class OffsetFetchResponseTopics:
    """The stored offsets of one topic, within a group (v8+)."""

    name: str = wire("8-9", default="", ignorable=True)
    topic_id: Uuid = wire("10+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = wire("8+")


@struct
class OffsetFetchResponseGroup:
    """The stored offsets of one group, or the error (v8+)."""

    group_id: str = wire("8+")
    topics: tuple[OffsetFetchResponseTopics, ...] = wire("8+")
    error_code: ErrorCode = wire("8+", default=ErrorCode.NONE)


@message(api_key=9, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    """Give the stored offsets of one group (v1-v7) or of each group (v8+).

    A partition without a stored offset has the offset -1 and no error.
    """

    throttle_time_ms: i32 = wire("3+", default=0, ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = wire("0-7", default=())
    error_code: ErrorCode = wire("2-7", default=ErrorCode.NONE, ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = wire("8+", default=())
