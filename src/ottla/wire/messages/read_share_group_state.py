"""ReadShareGroupState (API key 84): a share-partition's stored state is read."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class PartitionData:
    """One partition, and the leader epoch of the one who asks."""

    partition: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class ReadStateData:
    """A topic and the partitions to read."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionData, ...] = wire("0+")


@message(api_key=84, versions="0", flexible="0+", listeners=("broker",))
class ReadShareGroupStateRequest:
    """A share-partition's leader asks the share coordinator for the stored state."""

    group_id: str = wire("0+")
    topics: tuple[ReadStateData, ...] = wire("0+")


@struct
class StateBatch:
    """Records in a row with the same delivery state and delivery count."""

    first_offset: i64 = wire("0+")
    last_offset: i64 = wire("0+")
    delivery_state: i8 = wire("0+")
    delivery_count: i16 = wire("0+")


@struct
class PartitionResult:
    """The stored state of one partition, or the error."""

    partition: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    state_epoch: i32 = wire("0+")
    start_offset: i64 = wire("0+")
    state_batches: tuple[StateBatch, ...] = wire("0+")


@struct
class ReadStateResult:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionResult, ...] = wire("0+")


@message(api_key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    """Give the stored state of each share-partition."""

    results: tuple[ReadStateResult, ...] = wire("0+")
