"""InitProducerId (API key 22): a producer gets its id and epoch."""

from typing import Final

from ottla.wire.declare import i16, i32, i64, message, wire
from ottla.wire.error_code import ErrorCode

FENCED_FROM: Final = 4


@message(api_key=22, versions="0-6", flexible="2+", listeners=("broker",), latest_version_unstable=True)
class InitProducerIdRequest:
    """Ask for a producer id, and fence earlier producers with the same transactional id.

    Without a transactional id the producer is only idempotent. v3 adds the id and epoch that the producer has
    and wants raised. v4 and v5 change no field but the errors of the answer: v4 PRODUCER_FENCED, v5
    TRANSACTION_ABORTABLE. v6 is not yet stable: it prepares two-phase commit.
    """

    transactional_id: str | None = wire("0+")
    transaction_timeout_ms: i32 = wire("0+")
    producer_id: i64 = wire("3+", default=-1)
    producer_epoch: i16 = wire("3+", default=-1)
    enable_2pc: bool = wire("6+", default=False)
    keep_prepared_txn: bool = wire("6+", default=False)


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    """Give the producer its id and epoch.

    v6 also names the transaction that was kept open for a two-phase commit.
    """

    throttle_time_ms: i32 = wire("0+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    producer_id: i64 = wire("0+", default=-1)
    producer_epoch: i16 = wire("0+")
    ongoing_txn_producer_id: i64 = wire("6+", default=-1)
    ongoing_txn_producer_epoch: i16 = wire("6+", default=-1)
