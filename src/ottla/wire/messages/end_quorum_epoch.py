"""EndQuorumEpoch (API key 54): a leader of the metadata quorum resigns."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


@struct
class ReplicaInfo:
    """A voter that may succeed, by its id and directory id (v1+)."""

    candidate_id: i32 = wire("1+")
    candidate_directory_id: Uuid = wire("1+")


@struct
class EndEpochPartition:
    """The resigning leader, its epoch and its preferred successors."""

    partition_index: i32 = wire("0+")
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    preferred_successors: tuple[i32, ...] = wire("0", default=(), ignorable=True)
    preferred_candidates: tuple[ReplicaInfo, ...] = wire("1+", default=(), ignorable=True)


@struct
class EndEpochTopic:
    """A topic of the quorum; always the metadata topic alone."""

    topic_name: str = wire("0+")
    partitions: tuple[EndEpochPartition, ...] = wire("0+")


@struct
class LeaderEndpoint:
    """One of the resigning leader's endpoints, by listener name (v1+)."""

    name: str = wire("1+", map_key=True)
    host: str = wire("1+")
    port: u16 = wire("1+")


@message(api_key=54, versions="0-1", flexible="1+", listeners=("controller",))
class EndQuorumEpochRequest:
    """A resigning leader of the metadata quorum asks the voters to elect another.

    It lists who should try first: by id (v0), or by id and directory id (v1+).
    """

    cluster_id: str | None = wire("0+", default=None)
    topics: tuple[EndEpochTopic, ...] = wire("0+")
    leader_endpoints: tuple[LeaderEndpoint, ...] = wire("1+", default=(), ignorable=True)


@struct
class EndEpochPartitionResult:
    """The leader and epoch that the voter knows of."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class EndEpochTopicResult:
    """The voter's view of one topic."""

    topic_name: str = wire("0+")
    partitions: tuple[EndEpochPartitionResult, ...] = wire("0+")


@struct
class NodeEndpoint:
    """Where the leader named here can be reached (v1+)."""

    node_id: i32 = wire("1+", map_key=True)
    host: str = wire("1+")
    port: u16 = wire("1+")


@message(api_key=54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    """Take note of the resignation, or name the leader and epoch that the voter knows of."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    topics: tuple[EndEpochTopicResult, ...] = wire("0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire("1+", default=(), tag=0)
