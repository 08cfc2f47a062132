"""Delegation tokens: secrets that stand for a login, for clients that are to have no password.

A client logs in by one with SCRAM: the user name is the id of the token, the password its HMAC in base64, and
`sasl.tokenauth` is true.
"""

import base64
from collections.abc import Collection
from dataclasses import dataclass, field

from ottla.client.admin.routes import Routes
from ottla.client.errors import raise_for
from ottla.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

_OF_THE_BROKER = -1
"""The time that the brokers are configured for."""
_USER = "User"


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token. Principals are `User:alice`, times are milliseconds since 1970."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_at_ms: int
    expires_at_ms: int
    max_at_ms: int
    """It cannot be renewed to a later time than that."""

    @property
    def password(self) -> str:
        """Return the password of the token, for SCRAM."""
        return base64.b64encode(self.hmac).decode()


class DelegationTokens:
    """The delegation tokens of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def create(
        self, *, owner: str | None = None, renewers: Collection[str] = (), max_lifetime_ms: int | None = None
    ) -> DelegationToken:
        """Make a token, for oneself or for another owner that one may make tokens for."""
        kind, name = ("", "") if owner is None else _principal(owner)
        answer = await self._routes.ask_controller(
            CreateDelegationTokenRequest(
                owner_principal_type=kind,
                owner_principal_name=name,
                renewers=tuple(
                    CreatableRenewers(principal_type=of[0], principal_name=of[1])
                    for of in map(_principal, renewers)
                ),
                max_lifetime_ms=_OF_THE_BROKER if max_lifetime_ms is None else max_lifetime_ms,
            ),
            lambda found: (found.error_code,),
        )
        raise_for(answer.error_code, "cannot create a delegation token", None)
        made_for = f"{answer.principal_type}:{answer.principal_name}"
        asked_by = f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
        return DelegationToken(
            answer.token_id,
            answer.hmac,
            made_for,
            made_for if asked_by == ":" else asked_by,
            tuple(map(_with_type, renewers)),
            answer.issue_timestamp_ms,
            answer.expiry_timestamp_ms,
            answer.max_timestamp_ms,
        )

    async def list(self, owners: Collection[str] | None = None) -> tuple[DelegationToken, ...]:
        """Return the tokens that one may see: of some owners, or of all."""
        wanted = (
            None
            if owners is None
            else tuple(
                DescribeDelegationTokenOwner(principal_type=of[0], principal_name=of[1])
                for of in map(_principal, owners)
            )
        )
        answer = await self._routes.ask_any(DescribeDelegationTokenRequest(owners=wanted))
        raise_for(answer.error_code, "cannot list delegation tokens", None)
        return tuple(
            DelegationToken(
                one.token_id,
                one.hmac,
                f"{one.principal_type}:{one.principal_name}",
                f"{one.token_requester_principal_type or one.principal_type}:"
                f"{one.token_requester_principal_name or one.principal_name}",
                tuple(f"{item.principal_type}:{item.principal_name}" for item in one.renewers),
                one.issue_timestamp,
                one.expiry_timestamp,
                one.max_timestamp,
            )
            for one in answer.tokens
        )

    async def renew(self, hmac: bytes, period_ms: int | None = None) -> int:
        """Let a token live for a period from now on. Returns when it expires."""
        answer = await self._routes.ask_controller(
            RenewDelegationTokenRequest(
                hmac=hmac, renew_period_ms=_OF_THE_BROKER if period_ms is None else period_ms
            ),
            lambda found: (found.error_code,),
            repeatable=True,
        )
        raise_for(answer.error_code, "cannot renew the delegation token", None)
        return int(answer.expiry_timestamp_ms)

    async def expire(self, hmac: bytes, period_ms: int = -1) -> int:
        """Let a token end after a period, or at once. Returns when it expires."""
        answer = await self._routes.ask_controller(
            ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms),
            lambda found: (found.error_code,),
        )
        raise_for(answer.error_code, "cannot end the delegation token", None)
        return int(answer.expiry_timestamp_ms)


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    return (kind, name) if colon else (_USER, text)


def _with_type(text: str) -> str:
    return ":".join(_principal(text))
