"""InitializeShareGroupState (API key 83): the share coordinator begins to keep the state of partitions."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class PartitionData:
    """One partition, its start offset and the epoch of the new state."""

    partition: i32 = wire("0+")
    state_epoch: i32 = wire("0+")
    start_offset: i64 = wire("0+")


@struct
class InitializeStateData:
    """A topic and the partitions to begin with."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionData, ...] = wire("0+")


@message(api_key=83, versions="0", flexible="0+", listeners=("broker",))
class InitializeShareGroupStateRequest:
    """The group coordinator asks the share coordinator to begin a group's state of partitions."""

    group_id: str = wire("0+")
    topics: tuple[InitializeStateData, ...] = wire("0+")


@struct
class PartitionResult:
    """Whether one partition's state was begun."""

    partition: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@struct
class InitializeStateResult:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionResult, ...] = wire("0+")


@message(api_key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    """Say for each partition whether its state was begun."""

    results: tuple[InitializeStateResult, ...] = wire("0+")
