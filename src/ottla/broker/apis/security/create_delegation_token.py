"""CreateDelegationToken: a secret that stands for a login, for a client that has logged in."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, CheckedBy, serves
from ottla.quorum.controller.decision import Refusal
from ottla.quorum.controller.security.delegation_tokens import owner_of, refuse_create_token
from ottla.security.rights import Operation, ResourceType, Right
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

CREATE_TOKENS = Right(Operation.CREATE_TOKENS, ResourceType.USER)
_REQUESTER_FROM = 3


@serves(
    CreateDelegationTokenRequest,
    "1-3",
    free_because="users get their own tokens, and the tokens of others are checked one by one",
    checked_by=CheckedBy.HANDLER,
    listeners=BOTH,
    is_forwarded=True,
)
def create_delegation_token(
    ask: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse | Deferred[CreateDelegationTokenResponse]:
    """Let the controller make a token: for the client itself, or for an owner that it may make tokens for."""
    owner = owner_of(ask, context.principal)
    error_code = ErrorCode.NONE
    if not context.may_use_tokens:
        error_code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif owner != context.principal and not context.allows(CREATE_TOKENS, str(owner)):
        error_code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if error_code is ErrorCode.NONE:
        return context.ask_controller(ask)
    named = replace(ask, owner_principal_type=owner.type, owner_principal_name=owner.name)
    refused = refuse_create_token(named, Refusal(error_code))
    if context.version < _REQUESTER_FROM:
        return refused
    return replace(
        refused,
        token_requester_principal_type=context.principal.type,
        token_requester_principal_name=context.principal.name,
    )
