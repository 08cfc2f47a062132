"""DescribeLogDirs (API key 35): what lies in a broker's log directories."""

from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DescribableLogDirTopic:
    """A topic and the partitions wanted of it."""

    topic: str = wire("0+", map_key=True)
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=35, versions="1-5", flexible="2+", listeners=("broker",))
class DescribeLogDirsRequest:
    """Ask a broker what lies in its log directories, for some topics or for all when null."""

    topics: tuple[DescribableLogDirTopic, ...] | None = wire("0+")


@struct
class DescribeLogDirsPartition:
    """A replica: its size, its lag, and whether it is still being moved here."""

    partition_index: i32 = wire("0+")
    partition_size: i64 = wire("0+")
    offset_lag: i64 = wire("0+")
    is_future_key: bool = wire("0+")


@struct
class DescribeLogDirsTopic:
    """A topic with replicas in the directory."""

    name: str = wire("0+")
    partitions: tuple[DescribeLogDirsPartition, ...] = wire("0+")


@struct
class DescribeLogDirsResult:
    """A log directory and the replicas in it."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    log_dir: str = wire("0+")
    topics: tuple[DescribeLogDirsTopic, ...] = wire("0+")
    total_bytes: i64 = wire("4+", default=-1, ignorable=True)
    usable_bytes: i64 = wire("4+", default=-1, ignorable=True)
    is_cordoned: bool = wire("5+", default=False, ignorable=True)


@message(api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """Give the replicas in each log directory with their sizes.

    v3 adds an error for the whole request, v4 the size of the volume and the space left on it,
    v5 whether the directory is closed for new replicas.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("3+", default=ErrorCode.NONE, ignorable=True)
    results: tuple[DescribeLogDirsResult, ...] = wire("0+")
