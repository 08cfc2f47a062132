"""AssignReplicasToDirs (API key 73): a broker reports in which directory a replica lives."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AssignedPartition:
    """One partition whose replica lies in the directory."""

    partition_index: i32 = wire("0+")


@struct
class AssignedTopic:
    """A topic whose replicas lie in the directory."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[AssignedPartition, ...] = wire("0+")


@struct
class DirectoryAssignment:
    """A log directory by its id, and the replicas in it."""

    id: Uuid = wire("0+")
    topics: tuple[AssignedTopic, ...] = wire("0+")


@message(api_key=73, versions="0", flexible="0+", listeners=("controller",))
class AssignReplicasToDirsRequest:
    """A broker tells the controller in which of its log directories replicas live."""

    broker_id: i32 = wire("0+")
    broker_epoch: i64 = wire("0+", default=-1)
    directories: tuple[DirectoryAssignment, ...] = wire("0+")


@struct
class AssignedPartitionResult:
    """Whether one replica's directory was noted."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@struct
class AssignedTopicResult:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[AssignedPartitionResult, ...] = wire("0+")


@struct
class DirectoryAssignmentResult:
    """The results of one log directory."""

    id: Uuid = wire("0+")
    topics: tuple[AssignedTopicResult, ...] = wire("0+")


@message(api_key=73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    """Say for each replica whether the controller took note of its directory."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    directories: tuple[DirectoryAssignmentResult, ...] = wire("0+")
