"""AllocateProducerIds (API key 67): a broker gets a block of producer ids."""

from ottla.wire.declare import i32, i64, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=67, versions="0", flexible="0+", listeners=("controller",))
class AllocateProducerIdsRequest:
    """Ask the controller for a block of producer ids that this broker may hand out."""

    broker_id: i32 = wire("0+")
    broker_epoch: i64 = wire("0+", default=-1)


@message(api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    """Give the first producer id of the block and how many there are.

    The controller answers only when the block is committed, so no id is ever given out twice.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    producer_id_start: i64 = wire("0+")
    producer_id_len: i32 = wire("0+")
