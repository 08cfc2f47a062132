"""SaslHandshake (API key 17): a SASL mechanism is chosen."""

from ottla.wire.declare import message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=17, versions="0-1", listeners=("broker", "controller"))
class SaslHandshakeRequest:
    """Choose the SASL mechanism to authenticate with.

    After v0 the tokens follow raw, after v1 in SaslAuthenticate. The API has no flexible version.
    """

    mechanism: str = wire("0+")


@message(api_key=17, versions="0-1")
class SaslHandshakeResponse:
    """Accept the mechanism, or list those that the server has enabled."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    mechanisms: tuple[str, ...] = wire("0+")
