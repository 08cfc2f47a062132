"""BeginQuorumEpoch (API key 53): a new leader of the metadata quorum makes itself known."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


@struct
class BeginEpochPartition:
    """The leader and its epoch, and (v1+) the directory of the voter addressed."""

    partition_index: i32 = wire("0+")
    voter_directory_id: Uuid = wire("1+", default=ZERO_UUID, ignorable=True)
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class BeginEpochTopic:
    """A topic of the quorum; always the metadata topic alone."""

    topic_name: str = wire("0+")
    partitions: tuple[BeginEpochPartition, ...] = wire("0+")


@struct
class LeaderEndpoint:
    """One of the leader's endpoints, by listener name (v1+)."""

    name: str = wire("1+", map_key=True)
    host: str = wire("1+")
    port: u16 = wire("1+")


@message(api_key=53, versions="0-1", flexible="1+", listeners=("controller",))
class BeginQuorumEpochRequest:
    """A new leader of the metadata quorum tells a voter of its epoch.

    v1 names the voter it is meant for, with its directory id, and gives the leader's endpoints.
    """

    cluster_id: str | None = wire("0+", default=None)
    voter_id: i32 = wire("1+", default=-1, ignorable=True)
    topics: tuple[BeginEpochTopic, ...] = wire("0+")
    leader_endpoints: tuple[LeaderEndpoint, ...] = wire("1+", default=(), ignorable=True)


@struct
class BeginEpochPartitionResult:
    """The leader and epoch that the voter knows of."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class BeginEpochTopicResult:
    """The voter's view of one topic."""

    topic_name: str = wire("0+")
    partitions: tuple[BeginEpochPartitionResult, ...] = wire("0+")


@struct
class NodeEndpoint:
    """Where the leader named here can be reached (v1+)."""

    node_id: i32 = wire("1+", map_key=True)
    host: str = wire("1+")
    port: u16 = wire("1+")


@message(api_key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    """Accept the new leader, or name the leader and epoch that the voter knows of."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    topics: tuple[BeginEpochTopicResult, ...] = wire("0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire("1+", default=(), tag=0)
