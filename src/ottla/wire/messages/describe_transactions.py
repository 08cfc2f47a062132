"""DescribeTransactions (API key 65): transactions, as their coordinator sees them."""

from ottla.wire.declare import i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=65, versions="0", flexible="0+", listeners=("broker",))
class DescribeTransactionsRequest:
    """Ask a transaction coordinator for the state of some transactional ids."""

    transactional_ids: tuple[str, ...] = wire("0+")


@struct
class TopicData:
    """A topic and those of its partitions that take part."""

    topic: str = wire("0+", map_key=True)
    partitions: tuple[i32, ...] = wire("0+")


@struct
class TransactionState:
    """A transactional id, its producer, and the transaction it is in."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    transactional_id: str = wire("0+")
    transaction_state: str = wire("0+")
    transaction_timeout_ms: i32 = wire("0+")
    transaction_start_time_ms: i64 = wire("0+")
    producer_id: i64 = wire("0+")
    producer_epoch: i16 = wire("0+")
    topics: tuple[TopicData, ...] = wire("0+")


@message(api_key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """Give the state of each transaction and the partitions that take part in it."""

    throttle_time_ms: i32 = wire("0+", default=0)
    transaction_states: tuple[TransactionState, ...] = wire("0+")
