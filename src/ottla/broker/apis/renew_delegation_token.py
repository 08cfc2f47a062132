"""RenewDelegationToken: a token that lives longer, which nobody on a plain listener may ask for."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


@handles(RenewDelegationTokenRequest)
def renew_delegation_token(
    _ask: RenewDelegationTokenRequest, _context: RequestContext
) -> RenewDelegationTokenResponse:
    """Refuse, as Kafka does on a plain listener."""
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
