"""AlterPartitionReassignments (API key 45): partitions move to other brokers, or stop moving."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class ReassignablePartition:
    """One partition and the brokers that should hold it; null cancels its move."""

    partition_index: i32 = wire("0+")
    replicas: tuple[i32, ...] | None = wire("0+", default=None)


@struct
class ReassignableTopic:
    """A topic and its partitions to move."""

    name: str = wire("0+")
    partitions: tuple[ReassignablePartition, ...] = wire("0+")


@message(api_key=45, versions="0-1", flexible="0+", listeners=("broker", "controller"))
class AlterPartitionReassignmentsRequest:
    """Move partitions to other brokers, or cancel moves that are under way.

    A null replica list cancels the move of that partition.
    v1 may refuse a move that would change the number of replicas.
    """

    timeout_ms: i32 = wire("0+", default=60000)
    allow_replication_factor_change: bool = wire("1+", default=True)
    topics: tuple[ReassignableTopic, ...] = wire("0+")


@struct
class ReassignablePartitionResponse:
    """What became of one partition's move."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")


@struct
class ReassignableTopicResponse:
    """The results of one topic's partitions."""

    name: str = wire("0+")
    partitions: tuple[ReassignablePartitionResponse, ...] = wire("0+")


@message(api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """Say for each partition whether its move was started or cancelled."""

    throttle_time_ms: i32 = wire("0+", default=0)
    allow_replication_factor_change: bool = wire("1+", default=True, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    responses: tuple[ReassignableTopicResponse, ...] = wire("0+")
