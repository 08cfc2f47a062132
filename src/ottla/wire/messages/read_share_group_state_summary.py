"""ReadShareGroupStateSummary (API key 87): the start offset of a share-partition is read."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class PartitionData:
    """One partition, and the leader epoch of the one who asks."""

    partition: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class ReadStateSummaryData:
    """A topic and the partitions to read."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionData, ...] = wire("0+")


@message(api_key=87, versions="0-1", flexible="0+", listeners=("broker",))
class ReadShareGroupStateSummaryRequest:
    """Ask the share coordinator for the start offsets alone, without the delivery state."""

    group_id: str = wire("0+")
    topics: tuple[ReadStateSummaryData, ...] = wire("0+")


@struct
class PartitionResult:
    """The start offset and the epochs of one partition, or the error."""

    partition: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    state_epoch: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    start_offset: i64 = wire("0+")
    delivery_complete_count: i32 = wire("1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionResult, ...] = wire("0+")


@message(api_key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    """Give the start offset and the epochs of each share-partition.

    v1 adds for how many records from the start offset on the delivery is complete; -1 means unknown.
    """

    results: tuple[ReadStateSummaryResult, ...] = wire("0+")
