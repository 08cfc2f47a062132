"""Fetch (API key 1): consumers, followers and observers read records."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import Records, i8, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty

LEADER_HINTS_FROM: Final = 16
RACKS_FROM: Final = 11
REPLICA_STATE_FROM: Final = 15
TOPIC_IDS_FROM: Final = 13


@struct
class ReplicaState:
    """The follower that reads, and the epoch of its broker (v15+)."""

    replica_id: i32 = wire("15+", default=-1)
    replica_epoch: i64 = wire("15+", default=-1)


@struct
class FetchPartition:
    """One partition, the offset to read from, and what the reader knows of it."""

    partition: i32 = wire("0+")
    current_leader_epoch: i32 = wire("9+", default=-1, ignorable=True)
    fetch_offset: i64 = wire("0+")
    last_fetched_epoch: i32 = wire("12+", default=-1)
    log_start_offset: i64 = wire("5+", default=-1, ignorable=True)
    partition_max_bytes: i32 = wire("0+")
    replica_directory_id: Uuid = wire("17+", default=ZERO_UUID, tag=0, ignorable=True)
    high_watermark: i64 = wire("18+", default=9223372036854775807, tag=1, ignorable=True)


@struct
class FetchTopic:
    """A topic and the partitions to read."""

    topic: str = wire("0-12", default="", ignorable=True)
    topic_id: Uuid = wire("13+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[FetchPartition, ...] = wire("0+")


@struct
class ForgottenTopic:
    """Partitions that leave the fetch session (v7+)."""

    topic: str = wire("7-12", default="", ignorable=True)
    topic_id: Uuid = wire("13+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[i32, ...] = wire("7+")


@message(api_key=1, versions="4-18", flexible="12+", listeners=("broker", "controller"))
class FetchRequest:
    """Read records from partitions, as a consumer, a follower or an observer of the metadata log.

    v5 adds the follower's log start offset, v7 fetch sessions (KIP-227), v9 the leader epoch, v11 the rack,
    v12 the last fetched epoch. v13+ names topics by id instead of by name.
    v15 moves the replica id into a tagged field with its broker epoch, v17 adds the replica's directory
    id, v18 its high watermark. v6, v8, v10, v14 and v16 change no field of the request.
    """

    cluster_id: str | None = wire("12+", default=None, tag=0, ignorable=True)
    replica_id: i32 = wire("0-14", default=-1)
    replica_state: ReplicaState = wire("15+", default=empty(ReplicaState), tag=1)
    max_wait_ms: i32 = wire("0+")
    min_bytes: i32 = wire("0+")
    max_bytes: i32 = wire("3+", default=2147483647, ignorable=True)
    isolation_level: i8 = wire("4+", default=0, ignorable=True)
    session_id: i32 = wire("7+", default=0, ignorable=True)
    session_epoch: i32 = wire("7+", default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...] = wire("0+")
    forgotten_topics_data: tuple[ForgottenTopic, ...] = wire("7+", default=())
    rack_id: str = wire("11+", default="", ignorable=True)


@struct
class EpochEndOffset:
    """Where the reader's log parts from the leader's: it must truncate (v12+)."""

    epoch: i32 = wire("12+", default=-1)
    end_offset: i64 = wire("12+", default=-1)


@struct
class LeaderIdAndEpoch:
    """The leader to turn to instead (v12+)."""

    leader_id: i32 = wire("12+", default=-1)
    leader_epoch: i32 = wire("12+", default=-1)


@struct
class SnapshotId:
    """The snapshot to load, because the log no longer begins so early (v12+)."""

    end_offset: i64 = wire("0+", default=-1)
    epoch: i32 = wire("0+", default=-1)


@struct
class AbortedTransaction:
    """An aborted transaction whose records the consumer has to leave out."""

    producer_id: i64 = wire("4+")
    first_offset: i64 = wire("4+")


@struct
class PartitionData:
    """The records and the offsets of one partition, or the error."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    high_watermark: i64 = wire("0+")
    last_stable_offset: i64 = wire("4+", default=-1, ignorable=True)
    log_start_offset: i64 = wire("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = wire("12+", default=empty(EpochEndOffset), tag=0)
    current_leader: LeaderIdAndEpoch = wire("12+", default=empty(LeaderIdAndEpoch), tag=1)
    snapshot_id: SnapshotId = wire("12+", default=empty(SnapshotId), tag=2)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = wire("4+", ignorable=True)
    preferred_read_replica: i32 = wire("11+", default=-1)
    records: Records | None = wire("0+")


@struct
class FetchableTopicResponse:
    """The results of one topic's partitions."""

    topic: str = wire("0-12", default="", ignorable=True)
    topic_id: Uuid = wire("13+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[PartitionData, ...] = wire("0+")


@struct
class NodeEndpoint:
    """Where a leader named here can be reached (v16+)."""

    node_id: i32 = wire("16+", map_key=True)
    host: str = wire("16+")
    port: i32 = wire("16+")
    rack: str | None = wire("16+", default=None)


@message(api_key=1, versions="4-18", flexible="12+")
class FetchResponse:
    """Give the records of each partition, or tell the reader where to go instead.

    In a fetch session only partitions with news are listed. The last batch of a partition may be cut short.
    v12 adds the signs by which a replica learns to truncate, to load a snapshot or to find the leader;
    v16 adds that leader's endpoint.
    """

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    error_code: ErrorCode = wire("7+", default=ErrorCode.NONE, ignorable=True)
    session_id: i32 = wire("7+", default=0)
    responses: tuple[FetchableTopicResponse, ...] = wire("0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire("16+", default=(), tag=0)
