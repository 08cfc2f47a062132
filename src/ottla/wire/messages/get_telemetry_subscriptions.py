"""GetTelemetrySubscriptions (API key 71): a client learns which metrics to push."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=71, versions="0", flexible="0+", listeners=("broker",))
class GetTelemetrySubscriptionsRequest:
    """Ask which metrics the client should push; the first time with a zero id."""

    client_instance_id: Uuid = wire("0+")


@message(api_key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """Tell the client its id, which metrics to push, how often and how compressed."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    client_instance_id: Uuid = wire("0+")
    subscription_id: i32 = wire("0+")
    accepted_compression_types: tuple[i8, ...] = wire("0+")
    push_interval_ms: i32 = wire("0+")
    telemetry_max_bytes: i32 = wire("0+")
    delta_temporality: bool = wire("0+")
    requested_metrics: tuple[str, ...] = wire("0+")
