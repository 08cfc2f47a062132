"""DescribeQuorum (API key 55): the state of the metadata quorum."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, i64, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode

DIRECTORIES_FROM: Final = 2


@struct
class DescribeQuorumPartition:
    """A partition asked about; always 0."""

    partition_index: i32 = wire("0+")


@struct
class DescribeQuorumTopic:
    """A topic asked about; always the metadata topic alone."""

    topic_name: str = wire("0+")
    partitions: tuple[DescribeQuorumPartition, ...] = wire("0+")


@message(api_key=55, versions="0-2", flexible="0+", listeners=("broker", "controller"))
class DescribeQuorumRequest:
    """Ask the leader of the metadata quorum how far its voters and observers are."""

    topics: tuple[DescribeQuorumTopic, ...] = wire("0+")


@struct
class ReplicaState:
    """How far a voter or an observer has come."""

    replica_id: i32 = wire("0+")
    replica_directory_id: Uuid = wire("2+", default=ZERO_UUID)
    log_end_offset: i64 = wire("0+")
    last_fetch_timestamp: i64 = wire("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: i64 = wire("1+", default=-1, ignorable=True)


@struct
class DescribeQuorumPartitionResult:
    """The quorum's state: its leader, high watermark and replicas."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("2+", default="", ignorable=True)
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    high_watermark: i64 = wire("0+")
    current_voters: tuple[ReplicaState, ...] = wire("0+")
    observers: tuple[ReplicaState, ...] = wire("0+")


@struct
class DescribeQuorumTopicResult:
    """The quorum's state, by topic."""

    topic_name: str = wire("0+")
    partitions: tuple[DescribeQuorumPartitionResult, ...] = wire("0+")


@struct
class Listener:
    """A listener through which a voter can be reached (v2+)."""

    name: str = wire("2+", map_key=True)
    host: str = wire("2+")
    port: u16 = wire("2+")


@struct
class Node:
    """A voter and its listeners (v2+)."""

    node_id: i32 = wire("2+", map_key=True)
    listeners: tuple[Listener, ...] = wire("2+")


@message(api_key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """Give the leader, the high watermark, and the position of each voter and observer.

    v1 adds the times at which a replica last fetched and last had caught up.
    v2 adds error messages, directory ids and the voters' endpoints.
    """

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("2+", default="", ignorable=True)
    topics: tuple[DescribeQuorumTopicResult, ...] = wire("0+")
    nodes: tuple[Node, ...] = wire("2+", default=())
