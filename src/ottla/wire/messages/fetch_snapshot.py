"""FetchSnapshot (API key 59): a replica loads a snapshot of the metadata log."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import Records, i32, i64, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty


@struct
class SnapshotId:
    """A snapshot: the offset at which it ends (exclusive) and the epoch of its last record."""

    end_offset: i64 = wire("0+")
    epoch: i32 = wire("0+")


@struct
class FetchSnapshotPartition:
    """The snapshot and the position to read from."""

    partition: i32 = wire("0+")
    current_leader_epoch: i32 = wire("0+")
    snapshot_id: SnapshotId = wire("0+")
    position: i64 = wire("0+")
    replica_directory_id: Uuid = wire("1+", default=ZERO_UUID, tag=0, ignorable=True)


@struct
class FetchSnapshotTopic:
    """A topic whose snapshot is read; always the metadata topic."""

    name: str = wire("0+")
    partitions: tuple[FetchSnapshotPartition, ...] = wire("0+")


@message(api_key=59, versions="0-1", flexible="0+", listeners=("controller",))
class FetchSnapshotRequest:
    """Read a piece of a metadata snapshot from a byte position on.

    v1 adds the replica's directory id.
    """

    cluster_id: str | None = wire("0+", default=None, tag=0)
    replica_id: i32 = wire("0+", default=-1)
    max_bytes: i32 = wire("0+", default=2147483647)
    topics: tuple[FetchSnapshotTopic, ...] = wire("0+")


@struct
class LeaderIdAndEpoch:
    """The leader to turn to instead."""

    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class FetchSnapshotPartitionResult:
    """A piece of the snapshot, or the error."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    snapshot_id: SnapshotId = wire("0+")
    current_leader: LeaderIdAndEpoch = wire("0+", default=empty(LeaderIdAndEpoch), tag=0)
    size: i64 = wire("0+")
    position: i64 = wire("0+")
    unaligned_records: Records = wire("0+")


@struct
class FetchSnapshotTopicResult:
    """The results of one topic's partitions."""

    name: str = wire("0+")
    partitions: tuple[FetchSnapshotPartitionResult, ...] = wire("0+")


@struct
class NodeEndpoint:
    """Where the leader named here can be reached (v1+)."""

    node_id: i32 = wire("1+", map_key=True)
    host: str = wire("1+")
    port: u16 = wire("1+")


@message(api_key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    """Give a piece of the snapshot and its whole size.

    The bytes are a slice of the file: they may begin and end inside a batch.
    """

    throttle_time_ms: i32 = wire("0+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    topics: tuple[FetchSnapshotTopicResult, ...] = wire("0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire("1+", default=(), tag=0)
