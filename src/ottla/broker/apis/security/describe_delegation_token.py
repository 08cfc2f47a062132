"""DescribeDelegationToken: the tokens that a client may see, with their secrets."""

from collections.abc import Sequence
from typing import Final

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, CheckedBy, serves
from ottla.broker.serving.in_turns import AT_ONCE, InTurns
from ottla.quorum.controller.security.delegation_tokens import may_use, renewers_of
from ottla.security.delegation_tokens import TokenKeys
from ottla.security.principal import parse_principal
from ottla.security.rights import Operation, ResourceType, Right
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.metadata_records.delegation_tokens import DelegationTokenRecord

_DESCRIBE: Final = Right(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
_DESCRIBE_TOKENS: Final = Right(Operation.DESCRIBE_TOKENS, ResourceType.USER)
_REQUESTER_FROM: Final = 3


@serves(
    DescribeDelegationTokenRequest,
    "1-3",
    free_because="users get their own tokens, and the tokens of others are checked one by one",
    checked_by=CheckedBy.HANDLER,
    listeners=BOTH,
)
def describe_delegation_token(
    ask: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse | InTurns[DescribeDelegationTokenResponse]:
    """List a client's own tokens, and those of others that it may describe."""
    node = context.node
    secret = node.configs.node.delegation_token_secret_key
    if not context.may_use_tokens:
        return _refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if secret is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if ask.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in ask.owners}
    return _list(tuple(node.image.tokens.values()), owners, TokenKeys(secret.secret), context)


def _list(
    tokens: Sequence[DelegationTokenRecord], owners: set[str] | None, keys: TokenKeys, context: RequestContext
) -> InTurns[DescribeDelegationTokenResponse]:
    version = context.version
    found: list[DescribedDelegationToken] = []
    for place, token in enumerate(tokens):
        is_asked_for = owners is None or not owners.isdisjoint(
            {token.owner, token.requester, *token.renewers}
        )
        if is_asked_for and _may_see(token, context):
            found.append(_describe(token, keys, version))
        if place % AT_ONCE == AT_ONCE - 1:
            yield None
    return DescribeDelegationTokenResponse(tokens=tuple(found))


def _may_see(token: DelegationTokenRecord, context: RequestContext) -> bool:
    return (
        may_use(token, context.principal)
        or context.may(_DESCRIBE, token.token_id)
        or context.may(_DESCRIBE_TOKENS, token.owner)
    )


def _refused(error_code: ErrorCode) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=error_code, tokens=())


def _describe(token: DelegationTokenRecord, keys: TokenKeys, version: int) -> DescribedDelegationToken:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type if version >= _REQUESTER_FROM else "",
        token_requester_principal_name=requester.name if version >= _REQUESTER_FROM else "",
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=keys.hmac(token.token_id),
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type=one.type, principal_name=one.name)
            for one in renewers_of(token)
        ),
    )
