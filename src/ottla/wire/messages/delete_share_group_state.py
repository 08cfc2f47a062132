"""DeleteShareGroupState (API key 86): the share coordinator drops the state of partitions."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class PartitionData:
    """One partition whose state is to be deleted."""

    partition: i32 = wire("0+")


@struct
class DeleteStateData:
    """A topic and the partitions whose state is to be deleted."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionData, ...] = wire("0+")


@message(api_key=86, versions="0", flexible="0+", listeners=("broker",))
class DeleteShareGroupStateRequest:
    """The group coordinator asks the share coordinator to drop a group's state of partitions."""

    group_id: str = wire("0+")
    topics: tuple[DeleteStateData, ...] = wire("0+")


@struct
class PartitionResult:
    """Whether one partition's state was dropped."""

    partition: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@struct
class DeleteStateResult:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[PartitionResult, ...] = wire("0+")


@message(api_key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    """Say for each partition whether its state was dropped."""

    results: tuple[DeleteStateResult, ...] = wire("0+")
