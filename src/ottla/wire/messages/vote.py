"""Vote (API key 52): a voter asks for votes in the metadata quorum."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, i64, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


@struct
class VotePartition:
    """The candidate, its epoch, and where its log ends."""

    partition_index: i32 = wire("0+")
    replica_epoch: i32 = wire("0+")
    replica_id: i32 = wire("0+")
    replica_directory_id: Uuid = wire("1+", default=ZERO_UUID, ignorable=True)
    voter_directory_id: Uuid = wire("1+", default=ZERO_UUID, ignorable=True)
    last_offset_epoch: i32 = wire("0+")
    last_offset: i64 = wire("0+")
    pre_vote: bool = wire("2+", default=False)


@struct
class VoteTopic:
    """A topic of the quorum; always the metadata topic alone."""

    topic_name: str = wire("0+")
    partitions: tuple[VotePartition, ...] = wire("0+")


@message(api_key=52, versions="0-2", flexible="0+", listeners=("controller",))
class VoteRequest:
    """Ask a voter of the metadata quorum for its vote.

    v1 adds directory ids, so that a voter with a new disk counts as another voter.
    v2 can ask whether the vote would be given, without raising the epoch (pre-vote).
    """

    cluster_id: str | None = wire("0+", default=None)
    voter_id: i32 = wire("1+", default=-1, ignorable=True)
    topics: tuple[VoteTopic, ...] = wire("0+")


@struct
class VotePartitionResult:
    """Whether the vote was granted, and the leader and epoch the voter knows of."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    vote_granted: bool = wire("0+")


@struct
class VoteTopicResult:
    """The voter's decision, by topic."""

    topic_name: str = wire("0+")
    partitions: tuple[VotePartitionResult, ...] = wire("0+")


@struct
class NodeEndpoint:
    """Where the leader named here can be reached (v1+)."""

    node_id: i32 = wire("1+", map_key=True)
    host: str = wire("1+")
    port: u16 = wire("1+")


@message(api_key=52, versions="0-2", flexible="0+")
class VoteResponse:
    """Grant or refuse the vote, and name the leader and epoch that the voter knows of."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    topics: tuple[VoteTopicResult, ...] = wire("0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire("1+", default=(), tag=0)
