"""ShareAcknowledge (API key 79): a consumer of a share group acknowledges records."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class AcknowledgementBatch:
    """Offsets in a row, with one acknowledge type for all or one for each."""

    first_offset: i64 = wire("0+")
    last_offset: i64 = wire("0+")
    acknowledge_types: tuple[i8, ...] = wire("0+")


@struct
class AcknowledgePartition:
    """A partition and what is acknowledged in it."""

    partition_index: i32 = wire("0+", map_key=True)
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = wire("0+")


@struct
class AcknowledgeTopic:
    """A topic and what is acknowledged in it."""

    topic_id: Uuid = wire("0+", map_key=True)
    partitions: tuple[AcknowledgePartition, ...] = wire("0+")


@message(api_key=79, versions="1-2", flexible="0+", listeners=("broker",))
class ShareAcknowledgeRequest:
    """Acknowledge records that a share group delivered, without asking for more.

    v2 can also renew the locks of records.
    """

    group_id: str | None = wire("0+", default=None)
    member_id: str | None = wire("0+")
    share_session_epoch: i32 = wire("0+")
    is_renew_ack: bool = wire("2+", default=False)
    topics: tuple[AcknowledgeTopic, ...] = wire("0+")


@struct
class LeaderIdAndEpoch:
    """The leader to turn to instead."""

    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")


@struct
class PartitionData:
    """Whether one partition's acknowledgements were taken."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    current_leader: LeaderIdAndEpoch = wire("0+")


@struct
class ShareAcknowledgeTopicResponse:
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


@message(api_key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """Say for each partition whether the acknowledgements were taken.

    v2 adds for how long acquired records stay locked.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    acquisition_lock_timeout_ms: i32 = wire("2+", default=0, ignorable=True)
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = wire("0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire("0+")
