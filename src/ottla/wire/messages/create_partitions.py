"""CreatePartitions (API key 37): topics get more partitions."""

from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class CreatePartitionsAssignment:
    """The brokers that should hold one of the new partitions."""

    broker_ids: tuple[i32, ...] = wire("0+")


@struct
class CreatePartitionsTopic:
    """A topic and the number of partitions it should have."""

    name: str = wire("0+", map_key=True)
    partition_count: i32 = wire("0+")
    assignments: tuple[CreatePartitionsAssignment, ...] | None = wire("0+")


@message(api_key=37, versions="0-3", flexible="2+", listeners=("broker", "controller"))
class CreatePartitionsRequest:
    """Ask for more partitions for some topics, or only check that.

    The count is the new total, not the number to add. No version changes a field: from v3 on
    a client over its mutation quota gets an error instead of a delay.
    """

    topics: tuple[CreatePartitionsTopic, ...] = wire("0+")
    timeout_ms: i32 = wire("0+")
    validate_only: bool = wire("0+")


@struct
class CreatePartitionsTopicResult:
    """What became of one topic."""

    name: str = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """Say for each topic whether its partitions were added."""

    throttle_time_ms: i32 = wire("0+", default=0)
    results: tuple[CreatePartitionsTopicResult, ...] = wire("0+")
