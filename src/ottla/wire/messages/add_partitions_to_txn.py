"""AddPartitionsToTxn (API key 24): partitions join a transaction, or a leader checks that they did."""

from typing import Final

from ottla.wire.declare import i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode

ADDS_FOR_VERSION_2_FROM: Final = 5
FENCED_FROM: Final = 2
SEVERAL_FROM: Final = 4


@struct
class AddPartitionsToTxnTopic:
    """A topic and those of its partitions that take part."""

    name: str = wire("0+", map_key=True)
    partitions: tuple[i32, ...] = wire("0+")


@struct
class AddPartitionsToTxnTransaction:
    """One transaction and the partitions to add to it or to verify (v4+)."""

    transactional_id: str = wire("4+", map_key=True)
    producer_id: i64 = wire("4+")
    producer_epoch: i16 = wire("4+")
    verify_only: bool = wire("4+", default=False)
    topics: tuple[AddPartitionsToTxnTopic, ...] = wire("4+")


@message(api_key=24, versions="0-5", flexible="3+", listeners=("broker",))
class AddPartitionsToTxnRequest:
    """Add partitions to one transaction (v0-v3), or to many, or only check them (v4+).

    v4+ is spoken between brokers only; clients stay at v3.
    v5 changes no field: it lets the answer say TRANSACTION_ABORTABLE.
    """

    transactions: tuple[AddPartitionsToTxnTransaction, ...] = wire("4+", default=())
    v3_and_below_transactional_id: str = wire("0-3", default="")
    v3_and_below_producer_id: i64 = wire("0-3", default=0)
    v3_and_below_producer_epoch: i16 = wire("0-3", default=0)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = wire("0-3", default=())


@struct
class AddPartitionsToTxnPartitionResult:
    """The result of one partition."""

    partition_index: i32 = wire("0+", map_key=True)
    partition_error_code: ErrorCode = wire("0+")


@struct
class AddPartitionsToTxnTopicResult:
    """The results of one topic's partitions."""

    name: str = wire("0+", map_key=True)
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = wire("0+")


@struct
class AddPartitionsToTxnResult:
    """The results of one transaction (v4+)."""

    transactional_id: str = wire("4+", map_key=True)
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = wire("4+")


@message(api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """Say for each partition whether it is part of the transaction now.

    The results are grouped by topic (v0-v3) or by transaction and then by topic (v4+).
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("4+", default=ErrorCode.NONE, ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = wire("4+", default=())
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = wire("0-3", default=())
