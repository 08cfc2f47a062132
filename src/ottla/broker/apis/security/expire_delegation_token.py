"""ExpireDelegationToken: a token ends."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@handles(ExpireDelegationTokenRequest)
def expire_delegation_token(
    ask: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse | Deferred[ExpireDelegationTokenResponse]:
    """Answer when that holds. Clients that have not logged in, or only by a token, may not do this."""
    if context.may_use_tokens:
        return context.ask_controller(ask)
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
