"""DescribeDelegationToken (API key 41): delegation tokens, listed by owner."""

from ottla.wire.declare import i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DescribeDelegationTokenOwner:
    """A principal whose tokens are wanted."""

    principal_type: str = wire("0+")
    principal_name: str = wire("0+")


@message(api_key=41, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class DescribeDelegationTokenRequest:
    """Ask for the delegation tokens of some owners, or of all when null."""

    owners: tuple[DescribeDelegationTokenOwner, ...] | None = wire("0+")


@struct
class DescribedDelegationTokenRenewer:
    """A principal that may renew the token."""

    principal_type: str = wire("0+")
    principal_name: str = wire("0+")


@struct
class DescribedDelegationToken:
    """A token, its secret, its lifetime and who may renew it."""

    principal_type: str = wire("0+")
    principal_name: str = wire("0+")
    token_requester_principal_type: str = wire("3+", default="")
    token_requester_principal_name: str = wire("3+", default="")
    issue_timestamp: i64 = wire("0+")
    expiry_timestamp: i64 = wire("0+")
    max_timestamp: i64 = wire("0+")
    token_id: str = wire("0+")
    hmac: bytes = wire("0+")
    renewers: tuple[DescribedDelegationTokenRenewer, ...] = wire("0+")


@message(api_key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """List the tokens that the asking client may see.

    v3 also names who asked for a token, where that is not the owner.
    """

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    tokens: tuple[DescribedDelegationToken, ...] = wire("0+")
    throttle_time_ms: i32 = wire("0+", default=0)
