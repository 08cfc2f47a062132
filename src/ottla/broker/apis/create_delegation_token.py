"""CreateDelegationToken: a secret that stands for a login, which nobody on a plain listener has."""

from typing import Final

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

_NEVER: Final = -1


@handles(CreateDelegationTokenRequest)
def create_delegation_token(
    ask: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    """Refuse, as Kafka does on a plain listener, and say whose token it would have been."""
    requester_type, requester_name = context.principal
    owner_type, owner_name = requester_type, requester_name
    if ask.owner_principal_name:
        owner_type, owner_name = ask.owner_principal_type or "", ask.owner_principal_name
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type if context.version >= 3 else "",
        token_requester_principal_name=requester_name if context.version >= 3 else "",
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
        token_id="",
        hmac=b"",
    )
