"""TxnOffsetCommit (API key 28): a group's offsets are stored within a transaction."""

from typing import Final

from ottla.wire.declare import i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode

ABORTABLE_FROM: Final = 4
ADDS_PARTITIONS_FROM: Final = 5
LOADING_FROM: Final = 2


@struct
class TxnOffsetCommitRequestPartition:
    """The offset to store for one partition, with a note of the client."""

    partition_index: i32 = wire("0+")
    committed_offset: i64 = wire("0+")
    committed_leader_epoch: i32 = wire("2+", default=-1, ignorable=True)
    committed_metadata: str | None = wire("0+")


@struct
class TxnOffsetCommitRequestTopic:
    """A topic and the offsets to store for it."""

    name: str = wire("0+")
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = wire("0+")


@message(api_key=28, versions="0-5", flexible="3+", listeners=("broker",))
class TxnOffsetCommitRequest:
    """Store a group's offsets, to be valid only when the transaction commits.

    v2 adds leader epochs, v3 the member, so that a member that was replaced is refused.
    v4 changes no field: it lets the answer say TRANSACTION_ABORTABLE. v5 neither: the broker itself then
    adds the group's offsets to the transaction.
    """

    transactional_id: str = wire("0+")
    group_id: str = wire("0+")
    producer_id: i64 = wire("0+")
    producer_epoch: i16 = wire("0+")
    generation_id: i32 = wire("3+", default=-1)
    member_id: str = wire("3+", default="")
    group_instance_id: str | None = wire("3+", default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = wire("0+")


@struct
class TxnOffsetCommitResponsePartition:
    """Whether one partition's offset was taken."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@struct
class TxnOffsetCommitResponseTopic:
    """The results of one topic's partitions."""

    name: str = wire("0+")
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = wire("0+")


@message(api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """Say for each partition whether its offset was taken."""

    throttle_time_ms: i32 = wire("0+", default=0)
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = wire("0+")
