"""ListTransactions (API key 66): the transactions of a coordinator."""

from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=66, versions="0-2", flexible="0+", listeners=("broker",))
class ListTransactionsRequest:
    """List the transactions of a coordinator, by state and producer id; no filter means all.

    v1 can ask for those that run longer than a time, v2 for transactional ids that match a pattern.
    """

    state_filters: tuple[str, ...] = wire("0+")
    producer_id_filters: tuple[i64, ...] = wire("0+")
    duration_filter: i64 = wire("1+", default=-1)
    transactional_id_pattern: str | None = wire("2+", default=None)


@struct
class ListedTransaction:
    """A transactional id, its producer and its state."""

    transactional_id: str = wire("0+")
    producer_id: i64 = wire("0+")
    transaction_state: str = wire("0+")


@message(api_key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """List the transactions that match, and name the state filters that mean nothing to the broker."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    unknown_state_filters: tuple[str, ...] = wire("0+")
    transaction_states: tuple[ListedTransaction, ...] = wire("0+")
