"""ExpireDelegationToken: a token ends."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, CheckedBy, serves
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


@serves(
    ExpireDelegationTokenRequest,
    "1-2",
    free_because="users get their own tokens, and the tokens of others are checked one by one",
    checked_by=CheckedBy.HANDLER,
    listeners=BOTH,
    is_forwarded=True,
)
def expire_delegation_token(
    ask: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse | Deferred[ExpireDelegationTokenResponse]:
    """Answer when that holds. Clients that have not logged in, or only by a token, may not do this."""
    if context.may_use_tokens:
        return context.ask_controller(ask)
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
