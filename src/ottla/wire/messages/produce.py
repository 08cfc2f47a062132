"""Produce (API key 0): records are appended to partitions."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import Records, i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty

ACKS_ALL: Final = -1
ACKS_MIRRORED: Final = -2
"""Deviation: Kafka refuses this. It is how `ottla mirror` says that batches keep their offsets."""
ACKS_LETTERS: Final = -3
"""Deviation: Kafka refuses this. It is how a broker says that it sends dead letters of a share group."""

ABORTABLE_FROM: Final = 11
ADDS_PARTITIONS_FROM: Final = 12
LEADER_HINTS_FROM: Final = 10
TOPIC_IDS_FROM: Final = 13
ZSTD_FROM: Final = 7


@struct
class PartitionProduceData:
    """One partition and the batch to append."""

    partition_index: i32 = wire("0+")
    records: Records | None = wire("0+")


@struct
class TopicProduceData:
    """A topic and the batches for its partitions."""

    name: str = wire("0-12", default="", ignorable=True, map_key=True)
    topic_id: Uuid = wire("13+", default=ZERO_UUID, ignorable=True, map_key=True)
    partition_data: tuple[PartitionProduceData, ...] = wire("0+")


@message(api_key=0, versions="3-13", flexible="9+", listeners=("broker",))
class ProduceRequest:
    """Append records to partitions: one batch for each.

    With acks 0 there is no answer at all. v7 allows zstd. v11 changes no field: it lets the answer say
    TRANSACTION_ABORTABLE. v12 neither: the broker itself then adds the partitions to the transaction.
    v13 names topics by id instead of by name. v0-v2 are advertised for old clients, but refused.
    """

    transactional_id: str | None = wire("3+", default=None)
    acks: i16 = wire("0+")
    timeout_ms: i32 = wire("0+")
    topic_data: tuple[TopicProduceData, ...] = wire("0+")


@struct
class BatchIndexAndErrorMessage:
    """A record for which the whole batch was refused (v8+)."""

    batch_index: i32 = wire("8+")
    batch_index_error_message: str | None = wire("8+", default=None)


@struct
class LeaderIdAndEpoch:
    """The leader to turn to instead (v10+)."""

    leader_id: i32 = wire("10+", default=-1)
    leader_epoch: i32 = wire("10+", default=-1)


@struct
class PartitionProduceResponse:
    """Where one partition's batch was appended, or why it was not."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    base_offset: i64 = wire("0+")
    log_append_time_ms: i64 = wire("2+", default=-1, ignorable=True)
    log_start_offset: i64 = wire("5+", default=-1, ignorable=True)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = wire("8+", default=(), ignorable=True)
    error_message: str | None = wire("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = wire("10+", default=empty(LeaderIdAndEpoch), tag=0)


@struct
class TopicProduceResponse:
    """The results of one topic's partitions."""

    name: str = wire("0-12", default="", ignorable=True, map_key=True)
    topic_id: Uuid = wire("13+", default=ZERO_UUID, ignorable=True, map_key=True)
    partition_responses: tuple[PartitionProduceResponse, ...] = wire("0+")


@struct
class NodeEndpoint:
    """Where a leader named here can be reached (v10+)."""

    node_id: i32 = wire("10+", map_key=True)
    host: str = wire("10+")
    port: i32 = wire("10+")
    rack: str | None = wire("10+", default=None)


@message(api_key=0, versions="3-13", flexible="9+")
class ProduceResponse:
    """Give the offset at which each partition's batch begins, or the error.

    v5 adds the log start offset, v8 error messages and errors of single records,
    v10 the leader to turn to instead, with its endpoint.
    """

    responses: tuple[TopicProduceResponse, ...] = wire("0+")
    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    node_endpoints: tuple[NodeEndpoint, ...] = wire("10+", default=(), tag=0)
