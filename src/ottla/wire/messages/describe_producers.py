"""DescribeProducers (API key 61): the producers that write to partitions."""

from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DescribeProducersTopic:
    """A topic and the partitions asked about."""

    name: str = wire("0+")
    partition_indexes: tuple[i32, ...] = wire("0+")


@message(api_key=61, versions="0", flexible="0+", listeners=("broker",))
class DescribeProducersRequest:
    """Ask a partition's leader which producers it knows of."""

    topics: tuple[DescribeProducersTopic, ...] = wire("0+")


@struct
class ProducerState:
    """A producer as the leader knows it, with the start of its open transaction, if any."""

    producer_id: i64 = wire("0+")
    producer_epoch: i32 = wire("0+")
    last_sequence: i32 = wire("0+", default=-1)
    last_timestamp: i64 = wire("0+", default=-1)
    coordinator_epoch: i32 = wire("0+")
    current_txn_start_offset: i64 = wire("0+", default=-1)


@struct
class DescribeProducersPartitionResult:
    """The active producers of one partition."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    active_producers: tuple[ProducerState, ...] = wire("0+")


@struct
class DescribeProducersTopicResult:
    """The results of one topic's partitions."""

    name: str = wire("0+")
    partitions: tuple[DescribeProducersPartitionResult, ...] = wire("0+")


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """List the active producers of each partition."""

    throttle_time_ms: i32 = wire("0+", default=0)
    topics: tuple[DescribeProducersTopicResult, ...] = wire("0+")
