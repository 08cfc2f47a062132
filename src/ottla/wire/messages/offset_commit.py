"""OffsetCommit (API key 8): a group stores its offsets."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode

TOPIC_IDS_FROM: Final = 10


@struct
class OffsetCommitRequestPartition:
    """The offset to store for one partition, with a note of the client."""

    partition_index: i32 = wire("0+")
    committed_offset: i64 = wire("0+")
    committed_leader_epoch: i32 = wire("6+", default=-1, ignorable=True)
    committed_metadata: str | None = wire("0+")


@struct
class OffsetCommitRequestTopic:
    """A topic and the offsets to store for it."""

    name: str = wire("0-9", default="", ignorable=True)
    topic_id: Uuid = wire("10+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = wire("0+")


@message(api_key=8, versions="2-10", flexible="8+", listeners=("broker",))
class OffsetCommitRequest:
    """Store the offsets up to which a group has read.

    A commit by no member has the generation -1 and an empty member id.
    v2-v4 carry a retention time; v6 adds leader epochs, v7 the instance id. v9 changes no field, but lets
    members of KIP-848 groups commit with their epoch. v10 names topics by id instead of by name.
    """

    group_id: str = wire("0+")
    generation_id_or_member_epoch: i32 = wire("1+", default=-1, ignorable=True)
    member_id: str = wire("1+", ignorable=True)
    group_instance_id: str | None = wire("7+", default=None)
    retention_time_ms: i64 = wire("2-4", default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = wire("0+")


@struct
class OffsetCommitResponsePartition:
    """Whether one partition's offset was stored."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@struct
class OffsetCommitResponseTopic:
    """The results of one topic's partitions."""

    name: str = wire("0-9", default="", ignorable=True)
    topic_id: Uuid = wire("10+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[OffsetCommitResponsePartition, ...] = wire("0+")


@message(api_key=8, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    """Say for each partition whether its offset was stored."""

    throttle_time_ms: i32 = wire("3+", default=0, ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...] = wire("0+")
