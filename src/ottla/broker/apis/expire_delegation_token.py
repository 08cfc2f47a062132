"""ExpireDelegationToken: a token that ends, which nobody on a plain listener may ask for."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@handles(ExpireDelegationTokenRequest)
def expire_delegation_token(
    _ask: ExpireDelegationTokenRequest, _context: RequestContext
) -> ExpireDelegationTokenResponse:
    """Refuse, as Kafka does on a plain listener."""
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
