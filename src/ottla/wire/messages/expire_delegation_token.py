"""ExpireDelegationToken (API key 40): a delegation token's end is set."""

from ottla.wire.declare import i32, i64, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=40, versions="1-2", flexible="2+", listeners=("broker", "controller"))
class ExpireDelegationTokenRequest:
    """Change when a delegation token expires; a negative period ends it at once."""

    hmac: bytes = wire("0+")
    expiry_time_period_ms: i64 = wire("0+")


@message(api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """Give the time at which the token now expires."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    expiry_timestamp_ms: i64 = wire("0+")
    throttle_time_ms: i32 = wire("0+", default=0)
