"""ShareFetch (API key 78): a consumer of a share group acquires records."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import Records, i8, i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AcknowledgementBatch:
    """Offsets in a row, with one acknowledge type for all or one for each."""

    first_offset: i64 = wire("0+")
    last_offset: i64 = wire("0+")
    acknowledge_types: tuple[i8, ...] = wire("0+")


@struct
class FetchPartition:
    """A partition to read, and what is acknowledged in it."""

    partition_index: i32 = wire("0+", map_key=True)
    partition_max_bytes: i32 = wire("0", default=0)
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = wire("0+")


@struct
class FetchTopic:
    """A topic and the partitions to read."""

    topic_id: Uuid = wire("0+", map_key=True)
    partitions: tuple[FetchPartition, ...] = wire("0+")


@struct
class ForgottenTopic:
    """Partitions that leave the share session."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=78, versions="1-2", flexible="0+", listeners=("broker",))
class ShareFetchRequest:
    """Acquire records for a member of a share group, and acknowledge earlier ones.

    Epoch 0 opens a share session and -1 closes it. v2 adds the acquire mode
    and can renew the locks of records.
    """

    group_id: str | None = wire("0+", default=None)
    member_id: str | None = wire("0+")
    share_session_epoch: i32 = wire("0+")
    max_wait_ms: i32 = wire("0+")
    min_bytes: i32 = wire("0+")
    max_bytes: i32 = wire("0+", default=2147483647)
    max_records: i32 = wire("1+")
    batch_size: i32 = wire("1+")
    share_acquire_mode: i8 = wire("2+", default=0, ignorable=True)
    is_renew_ack: bool = wire("2+", default=False)
    topics: tuple[FetchTopic, ...] = wire("0+")
    forgotten_topics_data: tuple[ForgottenTopic, ...] = wire("0+")


@struct
class LeaderIdAndEpoch:
    """The leader to turn to instead."""

    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class AcquiredRecords:
    """Offsets in a row that the member has acquired, and how often they were delivered."""

    first_offset: i64 = wire("0+")
    last_offset: i64 = wire("0+")
    delivery_count: i16 = wire("0+")


@struct
class PartitionData:
    """The records of one partition, and what became of its acknowledgements."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    acknowledge_error_code: ErrorCode = wire("0+")
    acknowledge_error_message: str | None = wire("0+", default=None)
    current_leader: LeaderIdAndEpoch = wire("0+")
    records: Records | None = wire("0+", nullable="0")
    acquired_records: tuple[AcquiredRecords, ...] = wire("0+")


@struct
class ShareFetchableTopicResponse:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("0+", map_key=True)
    partitions: tuple[PartitionData, ...] = wire("0+")


@struct
class NodeEndpoint:
    """Where a leader named here can be reached."""

    node_id: i32 = wire("0+", map_key=True)
    host: str = wire("0+")
    port: i32 = wire("0+")
    rack: str | None = wire("0+", default=None)


@message(api_key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """Give records, and which of them the member has acquired.

    The batches may hold more records than were acquired: only the acquired ones may be processed.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    acquisition_lock_timeout_ms: i32 = wire("1+")
    responses: tuple[ShareFetchableTopicResponse, ...] = wire("0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire("0+")
