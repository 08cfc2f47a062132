"""RenewDelegationToken (API key 39): a delegation token lives longer."""

from ottla.wire.declare import i32, i64, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=39, versions="1-2", flexible="2+", listeners=("broker", "controller"))
class RenewDelegationTokenRequest:
    """Make a delegation token last longer, up to its maximum lifetime."""

    hmac: bytes = wire("0+")
    renew_period_ms: i64 = wire("0+")


@message(api_key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    """Give the time at which the token now expires."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    expiry_timestamp_ms: i64 = wire("0+")
    throttle_time_ms: i32 = wire("0+", default=0)
