"""UnregisterBroker (API key 64): a broker leaves the cluster for good."""

from ottla.wire.declare import i32, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=64, versions="0", flexible="0+", listeners=("broker", "controller"))
class UnregisterBrokerRequest:
    """Remove a broker's registration from the cluster."""

    broker_id: i32 = wire("0+")


@message(api_key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    """Say whether the registration was removed."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
