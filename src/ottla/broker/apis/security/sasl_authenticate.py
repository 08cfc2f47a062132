"""SaslAuthenticate: a token of a client that logs in, where listeners ask for nothing of the kind."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


@serves(
    SaslAuthenticateRequest,
    "0-2",
    free_because="it comes before the login",
    listeners=BOTH,
    is_for_login=True,
)
def sasl_authenticate(_ask: SaslAuthenticateRequest, _context: RequestContext) -> SaslAuthenticateResponse:
    """Refuse, as Kafka does where no handshake came before."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )
