"""DescribeTopicPartitions (API key 75): topics and their partitions, page by page."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DescribeTopicPartitionsRequestTopic:
    """A topic asked about."""

    name: str = wire("0+")


@struct
class Cursor:
    """The first partition of a page: where one answer stopped and the next goes on."""

    topic_name: str = wire("0+")
    partition_index: i32 = wire("0+")


@message(api_key=75, versions="0", flexible="0+", listeners=("broker",))
class DescribeTopicPartitionsRequest:
    """Ask for topics with all that is known of their partitions, a page at a time.

    No topics means all of them. The cursor says where the page begins.
    """

    topics: tuple[DescribeTopicPartitionsRequestTopic, ...] = wire("0+")
    response_partition_limit: i32 = wire("0+", default=2000)
    cursor: Cursor | None = wire("0+", default=None)


@struct
class DescribeTopicPartitionsResponsePartition:
    """A partition: its leader and its replicas of each kind."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    partition_index: i32 = wire("0+")
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+", default=-1, ignorable=True)
    replica_nodes: tuple[i32, ...] = wire("0+")
    isr_nodes: tuple[i32, ...] = wire("0+")
    eligible_leader_replicas: tuple[i32, ...] | None = wire("0+", default=None)
    last_known_elr: tuple[i32, ...] | None = wire("0+", default=None)
    offline_replicas: tuple[i32, ...] = wire("0+", ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic:
    """A topic and its partitions, as far as they fit into the page."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    name: str | None = wire("0+", map_key=True)
    topic_id: Uuid = wire("0+", ignorable=True)
    is_internal: bool = wire("0+", default=False, ignorable=True)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = wire("0+")
    topic_authorized_operations: i32 = wire("0+", default=-2147483648)


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, up to the limit asked for.

    The next cursor is null when nothing is left. Unlike Metadata it tells the eligible leader replicas.
    """

    throttle_time_ms: i32 = wire("0+", default=0, ignorable=True)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = wire("0+")
    next_cursor: Cursor | None = wire("0+", default=None)
