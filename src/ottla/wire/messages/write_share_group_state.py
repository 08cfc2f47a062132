"""WriteShareGroupState (API key 85): a share-partition's state is stored."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class StateBatch:
    """Records in a row with the same delivery state and delivery count."""

    first_offset: i64 = wire("0+")
    last_offset: i64 = wire("0+")
    delivery_state: i8 = wire("0+")
    delivery_count: i16 = wire("0+")


@struct
class PartitionData:
    """One partition, its epochs, and what changed in its state."""

    partition: i32 = wire("0+")
    state_epoch: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    start_offset: i64 = wire("0+")
    delivery_complete_count: i32 = wire("1+", default=-1, ignorable=True)
    state_batches: tuple[StateBatch, ...] = wire("0+")


@struct
class WriteStateData:
    """A topic and the partitions to store."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionData, ...] = wire("0+")


@message(api_key=85, versions="0-1", flexible="0+", listeners=("broker",))
class WriteShareGroupStateRequest:
    """A share-partition's leader asks the share coordinator to store changes of the state.

    A start offset of -1 leaves it as it is. v1 adds for how many records from the start offset on
    the delivery is complete.
    """

    group_id: str = wire("0+")
    topics: tuple[WriteStateData, ...] = wire("0+")


@struct
class PartitionResult:
    """Whether one partition's state was stored."""

    partition: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@struct
class WriteStateResult:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionResult, ...] = wire("0+")


@message(api_key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    """Say for each share-partition whether its state was stored."""

    results: tuple[WriteStateResult, ...] = wire("0+")
