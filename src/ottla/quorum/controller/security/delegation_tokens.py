"""Delegation tokens: created, renewed and expired by decision, described from an image.

A token is stored without its secret, which every node makes from the id with `delegation.token.secret.key`.

Deviation: there are bounds on the tokens of a requester and on the renewers of a token. Everybody who has
logged in may make tokens, and in Kafka a user without any right can fill the metadata with them.
"""

from base64 import urlsafe_b64encode
from typing import Final

from ottla.metadata.image import MetadataImage
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import Caller, ControllerView, Decision, Refusal
from ottla.security.delegation_tokens import TokenKeys, tokens_by_secret
from ottla.security.principal import Principal, parse_principal
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ottla.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from ottla.wire.metadata_records.delegation_tokens import DelegationTokenRecord, RemoveDelegationTokenRecord

NEVER: Final = -1
TOKENS_OF_A_REQUESTER_MAX: Final = 10_000
RENEWERS_MAX: Final = 100
RENEWER_CHARACTERS_MAX: Final = 1_000
_ID_BYTES: Final = 16
_REQUESTER_FROM: Final = 3
"""From this version on the response says who has asked for a token."""


def refuse_create_token(ask: CreateDelegationTokenRequest, refusal: Refusal) -> CreateDelegationTokenResponse:
    """Refuse, and say whose token it would have been."""
    return CreateDelegationTokenResponse(
        error_code=refusal.error_code,
        principal_type=ask.owner_principal_type or "",
        principal_name=ask.owner_principal_name or "",
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
        token_id="",
        hmac=b"",
    )


@decides(CreateDelegationTokenRequest, refuse=refuse_create_token)
def decide_create_token(
    view: ControllerView, ask: CreateDelegationTokenRequest
) -> Decision[CreateDelegationTokenResponse]:
    """Make a token for the client, or for the owner that it names. Whether it may was checked before."""
    caller = _caller(view)
    owner = owner_of(ask, caller.principal)
    keys = _keys(view)
    refused = refuse_create_token(
        replace(ask, owner_principal_type=owner.type, owner_principal_name=owner.name),
        Refusal(ErrorCode.NONE),
    )
    if caller.version >= _REQUESTER_FROM:
        refused = replace(
            refused,
            token_requester_principal_type=caller.principal.type,
            token_requester_principal_name=caller.principal.name,
        )
    if keys is None:
        return Decision(replace(refused, error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
    if any(renewer.principal_type != "User" for renewer in ask.renewers):
        return Decision(replace(refused, error_code=ErrorCode.INVALID_PRINCIPAL_TYPE))
    if _asks_too_much(view, ask, str(caller.principal)):
        return Decision(replace(refused, error_code=ErrorCode.POLICY_VIOLATION))
    config, now_ms = view.configs.node, view.now_ms
    lifetime_ms = config.delegation_token_max_lifetime_ms
    if ask.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, ask.max_lifetime_ms)
    max_ms = now_ms + lifetime_ms
    record = DelegationTokenRecord(
        owner=str(owner),
        requester=str(caller.principal),
        renewers=tuple(f"{one.principal_type}:{one.principal_name}" for one in ask.renewers),
        issue_timestamp=now_ms,
        max_timestamp=max_ms,
        expiration_timestamp=min(max_ms, now_ms + config.delegation_token_expiry_time_ms),
        token_id=urlsafe_b64encode(view.random.randbytes(_ID_BYTES)).decode().rstrip("="),
    )
    response = replace(
        refused,
        issue_timestamp_ms=record.issue_timestamp,
        expiry_timestamp_ms=record.expiration_timestamp,
        max_timestamp_ms=record.max_timestamp,
        token_id=record.token_id,
        hmac=keys.hmac(record.token_id),
    )
    return Decision(response, (record,))


def _asks_too_much(view: ControllerView, ask: CreateDelegationTokenRequest, requester: str) -> bool:
    if len(ask.renewers) > RENEWERS_MAX:
        return True
    if any(len(renewer.principal_name) > RENEWER_CHARACTERS_MAX for renewer in ask.renewers):
        return True
    theirs = sum(token.requester == requester for token in view.image.tokens.values())
    return theirs >= TOKENS_OF_A_REQUESTER_MAX


def owner_of(ask: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return whose token is asked for."""
    if not ask.owner_principal_name:
        return requester
    return Principal(ask.owner_principal_type or "", ask.owner_principal_name)


def refuse_renew_token(_ask: RenewDelegationTokenRequest, refusal: Refusal) -> RenewDelegationTokenResponse:
    """Refuse."""
    return RenewDelegationTokenResponse(error_code=refusal.error_code, expiry_timestamp_ms=NEVER)


@decides(RenewDelegationTokenRequest, refuse=refuse_renew_token)
def decide_renew_token(
    view: ControllerView, ask: RenewDelegationTokenRequest
) -> Decision[RenewDelegationTokenResponse]:
    """Let a token live longer, but not beyond its longest lifetime."""
    try:
        token = _find_own(view, ask.hmac)
        _check_lives(token, view.now_ms)
    except Refusal as refusal:
        return Decision(refuse_renew_token(ask, refusal))
    period_ms = view.configs.node.delegation_token_expiry_time_ms
    if ask.renew_period_ms >= 0:
        period_ms = min(period_ms, ask.renew_period_ms)
    expiry_ms = min(token.max_timestamp, view.now_ms + period_ms)
    return Decision(
        RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms),
        (replace(token, expiration_timestamp=expiry_ms),),
    )


def refuse_expire_token(
    _ask: ExpireDelegationTokenRequest, refusal: Refusal
) -> ExpireDelegationTokenResponse:
    """Refuse."""
    return ExpireDelegationTokenResponse(error_code=refusal.error_code, expiry_timestamp_ms=NEVER)


@decides(ExpireDelegationTokenRequest, refuse=refuse_expire_token)
def decide_expire_token(
    view: ControllerView, ask: ExpireDelegationTokenRequest
) -> Decision[ExpireDelegationTokenResponse]:
    """Remove a token now, or let it end at another time."""
    try:
        token = _find_own(view, ask.hmac)
        if ask.expiry_time_period_ms < 0:
            return Decision(
                ExpireDelegationTokenResponse(expiry_timestamp_ms=view.now_ms),
                (RemoveDelegationTokenRecord(token_id=token.token_id),),
            )
        _check_lives(token, view.now_ms)
    except Refusal as refusal:
        return Decision(refuse_expire_token(ask, refusal))
    expiry_ms = min(token.max_timestamp, view.now_ms + ask.expiry_time_period_ms)
    return Decision(
        ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms),
        (replace(token, expiration_timestamp=expiry_ms),),
    )


def expired_tokens(image: MetadataImage, now_ms: int) -> list[RemoveDelegationTokenRecord]:
    """Return the records that remove tokens whose time is over."""
    return [
        RemoveDelegationTokenRecord(token_id=token.token_id)
        for token in image.tokens.values()
        if min(token.max_timestamp, token.expiration_timestamp) < now_ms
    ]


def may_use(token: DelegationTokenRecord, principal: Principal) -> bool:
    """Say whether a token is a principal's own, or one that it may renew."""
    return str(principal) in (token.owner, token.requester, *token.renewers)


def _find_own(view: ControllerView, secret: bytes) -> DelegationTokenRecord:
    key = view.configs.node.delegation_token_secret_key
    if key is None:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token_id = tokens_by_secret(key.secret).find(view.image.tokens.keys(), secret)
    if token_id is None:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    token = view.image.tokens[token_id]
    if not may_use(token, _caller(view).principal):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    return token


def _check_lives(token: DelegationTokenRecord, now_ms: int) -> None:
    if min(token.max_timestamp, token.expiration_timestamp) < now_ms:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _keys(view: ControllerView) -> TokenKeys | None:
    secret = view.configs.node.delegation_token_secret_key
    return None if secret is None else TokenKeys(secret.secret)


def _caller(view: ControllerView) -> Caller:
    assert view.caller is not None, "only clients have tokens"
    return view.caller


def renewers_of(token: DelegationTokenRecord) -> list[Principal]:
    """Return who may renew a token."""
    return [parse_principal(one) for one in token.renewers]
