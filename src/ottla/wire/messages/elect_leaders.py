"""ElectLeaders (API key 43): partitions elect a leader."""

from typing import Final

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode

ERROR_OF_ALL_FROM: Final = 1


@struct
class TopicPartitions:
    """A topic and the partitions that should elect."""

    topic: str = wire("0+", map_key=True)
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=43, versions="0-2", flexible="2+", listeners=("broker", "controller"))
class ElectLeadersRequest:
    """Elect leaders of some partitions, or of all when null.

    v0 knows only the election of the preferred replica; v1+ also one of a replica that is not in sync.
    """

    election_type: i8 = wire("1+", default=0)
    topic_partitions: tuple[TopicPartitions, ...] | None = wire("0+")
    timeout_ms: i32 = wire("0+", default=60000)


@struct
class PartitionResult:
    """Whether one partition elected a leader."""

    partition_id: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")


@struct
class ReplicaElectionResult:
    """The results of one topic's partitions."""

    topic: str = wire("0+")
    partition_results: tuple[PartitionResult, ...] = wire("0+")


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """Say for each partition whether it elected a leader.

    When all partitions were asked for, those that needed no election are left out.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("1+", default=ErrorCode.NONE)
    replica_election_results: tuple[ReplicaElectionResult, ...] = wire("0+")
