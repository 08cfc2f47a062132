"""EndTxn (API key 26): a transaction commits or aborts."""

from typing import Final

from ottla.wire.declare import i16, i32, i64, message, wire
from ottla.wire.error_code import ErrorCode

FENCED_FROM: Final = 2
RAISES_EPOCHS_FROM: Final = 5


@message(api_key=26, versions="0-5", flexible="3+", listeners=("broker",))
class EndTxnRequest:
    """Commit or abort a transaction.

    v4 changes no field: it lets the answer say TRANSACTION_ABORTABLE.
    v5 means transactions v2: the coordinator raises the producer epoch with every transaction.
    """

    transactional_id: str = wire("0+")
    producer_id: i64 = wire("0+")
    producer_epoch: i16 = wire("0+")
    committed: bool = wire("0+")


@message(api_key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """Say whether the outcome is decided; the markers may be written later.

    v5 gives the producer id and epoch to use for the next transaction.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    producer_id: i64 = wire("5+", default=-1, ignorable=True)
    producer_epoch: i16 = wire("5+", default=-1, ignorable=True)
