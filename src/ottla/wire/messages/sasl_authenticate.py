"""SaslAuthenticate (API key 36): SASL tokens are exchanged."""

from ottla.wire.declare import i64, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=36, versions="0-2", flexible="2+", listeners=("broker", "controller"))
class SaslAuthenticateRequest:
    """Carry one SASL token of the client."""

    auth_bytes: bytes = wire("0+")


@message(api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """Carry one SASL token of the server, or say why the client was refused.

    v1 adds for how long the session is valid; 0 means for ever.
    """

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    auth_bytes: bytes = wire("0+")
    session_lifetime_ms: i64 = wire("1+", default=0, ignorable=True)
