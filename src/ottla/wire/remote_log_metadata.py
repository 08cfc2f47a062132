"""Records of tiered storage, kept in `__remote_log_metadata`: its types are numbered on their own."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, i64, message, struct, wire


@struct
class TopicIdPartitionEntry:
    """A partition, by topic name, topic id and number."""

    name: str = wire("0+")
    id: Uuid = wire("0+")
    partition: i32 = wire("0+")


@struct
class RemoteLogSegmentIdEntry:
    """A remote segment: its partition and its own id."""

    topic_id_partition: TopicIdPartitionEntry = wire("0+")
    id: Uuid = wire("0+")


@struct
class SegmentLeaderEpochEntry:
    """A leader epoch in the segment and the offset at which it begins."""

    leader_epoch: i32 = wire("0+")
    offset: i64 = wire("0+")


@message(api_key=0, versions="0", flexible="0+")
class RemoteLogSegmentMetadataRecord:
    """Record a log segment in tiered storage: its offsets, times, leader epochs and size."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = wire("0+")
    start_offset: i64 = wire("0+")
    end_offset: i64 = wire("0+")
    broker_id: i32 = wire("0+")
    max_timestamp_ms: i64 = wire("0+")
    event_timestamp_ms: i64 = wire("0+")
    segment_leader_epochs: tuple[SegmentLeaderEpochEntry, ...] = wire("0+")
    segment_size_in_bytes: i32 = wire("0+")
    custom_metadata: bytes | None = wire("0+", default=None)
    remote_log_segment_state: i8 = wire("0+")
    txn_index_empty: bool = wire("0+", default=False, tag=0)


@message(api_key=1, versions="0", flexible="0+")
class RemoteLogSegmentMetadataUpdateRecord:
    """Record that a remote segment has entered another state."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = wire("0+")
    broker_id: i32 = wire("0+")
    event_timestamp_ms: i64 = wire("0+")
    custom_metadata: bytes | None = wire("0+", default=None)
    remote_log_segment_state: i8 = wire("0+")


@message(api_key=2, versions="0", flexible="0+")
class RemotePartitionDeleteMetadataRecord:
    """Record how far the deletion of a partition from tiered storage has come."""

    topic_id_partition: TopicIdPartitionEntry = wire("0+")
    broker_id: i32 = wire("0+")
    event_timestamp_ms: i64 = wire("0+")
    remote_partition_delete_state: i8 = wire("0+")


@message(api_key=3, versions="0", flexible="0+")
class RemoteLogSegmentMetadataSnapshotRecord:
    """Record a remote segment within a snapshot, where the partition is known already."""

    segment_id: Uuid = wire("0+")
    start_offset: i64 = wire("0+")
    end_offset: i64 = wire("0+")
    broker_id: i32 = wire("0+")
    max_timestamp_ms: i64 = wire("0+")
    event_timestamp_ms: i64 = wire("0+")
    segment_leader_epochs: tuple[SegmentLeaderEpochEntry, ...] = wire("0+")
    segment_size_in_bytes: i32 = wire("0+")
    custom_metadata: bytes | None = wire("0+", default=None)
    remote_log_segment_state: i8 = wire("0+")
    txn_index_empty: bool = wire("0+", default=False, tag=0)
