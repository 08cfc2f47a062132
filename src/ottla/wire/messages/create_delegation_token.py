"""CreateDelegationToken (API key 38): a delegation token is issued."""

from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class CreatableRenewers:
    """A principal that may renew the token."""

    principal_type: str = wire("0+")
    principal_name: str = wire("0+")


@message(api_key=38, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class CreateDelegationTokenRequest:
    """Ask for a delegation token, for oneself or (v3+) for another owner."""

    owner_principal_type: str | None = wire("3+", default="")
    owner_principal_name: str | None = wire("3+", default="")
    renewers: tuple[CreatableRenewers, ...] = wire("0+")
    max_lifetime_ms: i64 = wire("0+")


@message(api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    """Give the new token, its secret and its lifetime.

    v3 also names who asked for it, where that is not the owner.
    """

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    principal_type: str = wire("0+")
    principal_name: str = wire("0+")
    token_requester_principal_type: str = wire("3+", default="")
    token_requester_principal_name: str = wire("3+", default="")
    issue_timestamp_ms: i64 = wire("0+")
    expiry_timestamp_ms: i64 = wire("0+")
    max_timestamp_ms: i64 = wire("0+")
    token_id: str = wire("0+")
    hmac: bytes = wire("0+")
    throttle_time_ms: i32 = wire("0+", default=0)
