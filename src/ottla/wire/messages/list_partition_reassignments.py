"""ListPartitionReassignments (API key 46): the partitions that are being moved."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class ListPartitionReassignmentsTopics:
    """A topic and the partitions asked about."""

    name: str = wire("0+")
    partition_indexes: tuple[i32, ...] = wire("0+")


@message(api_key=46, versions="0", flexible="0+", listeners=("broker", "controller"))
class ListPartitionReassignmentsRequest:
    """Ask which partitions are being moved, of some topics or of all when null."""

    timeout_ms: i32 = wire("0+", default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = wire("0+", default=None)


@struct
class OngoingPartitionReassignment:
    """One move: all replicas, the ones to come and the ones to go."""

    partition_index: i32 = wire("0+")
    replicas: tuple[i32, ...] = wire("0+")
    adding_replicas: tuple[i32, ...] = wire("0+")
    removing_replicas: tuple[i32, ...] = wire("0+")


@struct
class OngoingTopicReassignment:
    """A topic with partitions that are being moved."""

    name: str = wire("0+")
    partitions: tuple[OngoingPartitionReassignment, ...] = wire("0+")


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """List the partitions that are being moved."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    topics: tuple[OngoingTopicReassignment, ...] = wire("0+")
