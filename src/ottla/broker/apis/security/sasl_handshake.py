"""SaslHandshake: a client wants to log in, where listeners ask for nothing of the kind.

Clients that are set up for SASL send this first. Listeners are plain, so the answer is the one that Kafka
gives on a plain listener: it tells the client that its settings are wrong, where a closed connection would
only make it try again.
"""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@serves(
    SaslHandshakeRequest,
    "0-1",
    free_because="it comes before the login",
    listeners=BOTH,
    is_for_login=True,
)
def sasl_handshake(_ask: SaslHandshakeRequest, _context: RequestContext) -> SaslHandshakeResponse:
    """Refuse: there is nothing to log in to."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
