"""AlterReplicaLogDirs (API key 34): a broker's replicas move between its log directories."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AlterReplicaLogDirTopic:
    """A topic and those of its partitions that should live there."""

    name: str = wire("0+", map_key=True)
    partitions: tuple[i32, ...] = wire("0+")


@struct
class AlterReplicaLogDir:
    """A log directory by its path, and the replicas that should live there."""

    path: str = wire("0+", map_key=True)
    topics: tuple[AlterReplicaLogDirTopic, ...] = wire("0+")


@message(api_key=34, versions="1-2", flexible="2+", listeners=("broker",))
class AlterReplicaLogDirsRequest:
    """Ask a broker to hold replicas in the given log directories."""

    dirs: tuple[AlterReplicaLogDir, ...] = wire("0+")


@struct
class AlterReplicaLogDirPartitionResult:
    """Whether one replica's move was accepted."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@struct
class AlterReplicaLogDirTopicResult:
    """The results of one topic's partitions."""

    topic_name: str = wire("0+")
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = wire("0+")


@message(api_key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """Say for each replica whether its move was accepted.

    The copying goes on after the answer.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    results: tuple[AlterReplicaLogDirTopicResult, ...] = wire("0+")
