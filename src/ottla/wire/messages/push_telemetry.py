"""PushTelemetry (API key 72): a client pushes its metrics."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=72, versions="0", flexible="0+", listeners=("broker",))
class PushTelemetryRequest:
    """Push a client's metrics, as its subscription asks for; the last time as it terminates."""

    client_instance_id: Uuid = wire("0+")
    subscription_id: i32 = wire("0+")
    terminating: bool = wire("0+")
    compression_type: i8 = wire("0+")
    metrics: bytes = wire("0+")


@message(api_key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    """Say whether the metrics were taken."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
