"""AddOffsetsToTxn (API key 25): a group's committed offsets become part of a transaction."""

from typing import Final

from ottla.wire.declare import i16, i32, i64, message, wire
from ottla.wire.error_code import ErrorCode

FENCED_FROM: Final = 2


@message(api_key=25, versions="0-4", flexible="3+", listeners=("broker",))
class AddOffsetsToTxnRequest:
    """Tell the transaction coordinator that a group's offsets belong to the transaction.

    The coordinator adds the group's `__consumer_offsets` partition to the transaction.
    v4 changes no field: it lets the answer say TRANSACTION_ABORTABLE.
    A client of transactions v2 never sends it: TxnOffsetCommit v5+ does this work.
    """

    transactional_id: str = wire("0+")
    producer_id: i64 = wire("0+")
    producer_epoch: i16 = wire("0+")
    group_id: str = wire("0+")


@message(api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """Say whether the group's offsets now belong to the transaction."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
