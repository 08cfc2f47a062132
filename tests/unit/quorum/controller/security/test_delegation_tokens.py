"""Delegation tokens belong to somebody, live as long as they may, and obey only those whom they name."""

from typing import Any

import pytest
from tests.support.deciding import DecidingController

from ottla.quorum.controller.decision import Caller, ControllerView
from ottla.quorum.controller.security import delegation_tokens as tokens
from ottla.security.delegation_tokens import TokenKeys
from ottla.security.principal import Principal
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

ANN, BOB, EVE = (Principal("User", name) for name in ("ann", "bob", "eve"))
LIFETIME_MS, PERIOD_MS, START_MS = 10_000, 4_000, 1_000
SETTINGS = {
    "delegation.token.secret.key": "a-secret",
    "delegation.token.max.lifetime.ms": str(LIFETIME_MS),
    "delegation.token.expiry.time.ms": str(PERIOD_MS),
}


class Controller(DecidingController):
    """A controller that is asked by somebody, at a time."""

    def __init__(self, settings: dict[str, str] = SETTINGS) -> None:
        super().__init__(configs=settings)
        self.caller = Caller(ANN, "client", "host", 3)
        self.now_ms = START_MS

    @property
    def view(self) -> ControllerView:
        return super().view._replace(caller=self.caller, now_ms=self.now_ms)

    def as_(self, principal: Principal, version: int = 3) -> "Controller":
        self.caller = Caller(principal, "client", "host", version)
        return self

    def create_token(
        self, owner: Principal | None = None, *renewers: Principal, lifetime_ms: int = -1
    ) -> Any:
        ask = CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else owner.type,
            owner_principal_name=None if owner is None else owner.name,
            renewers=tuple(
                CreatableRenewers(principal_type=one.type, principal_name=one.name) for one in renewers
            ),
            max_lifetime_ms=lifetime_ms,
        )
        return self.ask(tokens.decide_create_token, ask)

    def renew(self, hmac: bytes, period_ms: int = -1) -> tuple[ErrorCode, int]:
        ask = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        answer = self.ask(tokens.decide_renew_token, ask)
        return answer.error_code, answer.expiry_timestamp_ms

    def expire(self, hmac: bytes, period_ms: int) -> tuple[ErrorCode, int]:
        ask = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = self.ask(tokens.decide_expire_token, ask)
        return answer.error_code, answer.expiry_timestamp_ms


@pytest.fixture
def controller() -> Controller:
    return Controller()


def test_a_token_is_its_requesters_and_lives_as_long_as_the_node_says(controller: Controller) -> None:
    answer = controller.create_token(None, BOB)
    assert answer.error_code is ErrorCode.NONE
    assert (answer.principal_type, answer.principal_name) == ("User", "ann")
    assert answer.issue_timestamp_ms == START_MS
    assert answer.expiry_timestamp_ms == START_MS + PERIOD_MS
    assert answer.max_timestamp_ms == START_MS + LIFETIME_MS
    (token,) = controller.image.tokens.values()
    assert (token.owner, token.requester, token.renewers) == ("User:ann", "User:ann", ("User:bob",))
    assert token.token_id == answer.token_id
    assert answer.hmac
    assert tokens.renewers_of(token) == [BOB]
    other = controller.create_token()
    assert (other.token_id, other.hmac) != (answer.token_id, answer.hmac)
    assert len(controller.image.tokens) == 2


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expiry_ms"),
    [
        (-1, LIFETIME_MS, PERIOD_MS),
        (0, LIFETIME_MS, PERIOD_MS),
        (1, 1, 1),
        (PERIOD_MS + 1, PERIOD_MS + 1, PERIOD_MS),
        (LIFETIME_MS + 1, LIFETIME_MS, PERIOD_MS),
    ],
)
def test_nobody_gets_a_longer_life_than_the_node_allows(
    controller: Controller, asked_ms: int, max_ms: int, expiry_ms: int
) -> None:
    answer = controller.create_token(lifetime_ms=asked_ms)
    assert answer.max_timestamp_ms == START_MS + max_ms
    assert answer.expiry_timestamp_ms == START_MS + expiry_ms


def test_a_token_may_be_made_for_somebody_else(controller: Controller) -> None:
    answer = controller.create_token(BOB)
    assert (answer.principal_type, answer.principal_name) == ("User", "bob")
    assert (answer.token_requester_principal_type, answer.token_requester_principal_name) == ("User", "ann")
    (token,) = controller.image.tokens.values()
    assert (token.owner, token.requester) == ("User:bob", "User:ann")
    old = controller.as_(ANN, version=2).create_token()
    assert old.token_requester_principal_name == "", "it has no place for it"


def test_renewers_are_users(controller: Controller) -> None:
    answer = controller.create_token(None, BOB, Principal("Group", "all"))
    assert answer.error_code is ErrorCode.INVALID_PRINCIPAL_TYPE
    assert not controller.image.tokens
    assert answer.hmac == b""
    assert answer.expiry_timestamp_ms == tokens.NEVER


def test_without_a_secret_there_are_no_tokens() -> None:
    controller = Controller({})
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    answer: CreateDelegationTokenResponse = controller.create_token()
    assert answer.error_code is disabled
    assert (answer.principal_name, answer.token_id) == ("ann", "")
    assert controller.renew(b"x") == (disabled, tokens.NEVER)
    assert controller.expire(b"x", -1) == (disabled, tokens.NEVER)


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        (ANN, ErrorCode.NONE),
        (BOB, ErrorCode.NONE),
        (Principal("User", "carl"), ErrorCode.NONE),
        (EVE, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    ],
)
def test_owner_requester_and_renewers_may_use_it_and_nobody_else(
    controller: Controller, principal: Principal, expected: ErrorCode
) -> None:
    hmac = controller.create_token(BOB, Principal("User", "carl")).hmac
    controller.as_(principal)
    assert controller.renew(hmac)[0] is expected
    assert controller.expire(hmac, 1)[0] is expected
    assert controller.expire(hmac, -1)[0] is expected
    assert bool(controller.image.tokens) is (expected is not ErrorCode.NONE)


def test_a_token_is_found_by_its_own_secret_alone(controller: Controller) -> None:
    first, second = controller.create_token().hmac, controller.create_token().hmac
    assert controller.renew(b"another") == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, tokens.NEVER)
    assert controller.expire(first, -1) == (ErrorCode.NONE, START_MS)
    assert controller.expire(first, -1) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, tokens.NEVER)
    assert controller.renew(second)[0] is ErrorCode.NONE


@pytest.mark.parametrize(
    ("asked_ms", "expected_ms"),
    [(-1, PERIOD_MS), (0, 0), (10, 10), (PERIOD_MS + 1, PERIOD_MS)],
)
def test_who_is_renewed_lives_a_period_longer(
    controller: Controller, asked_ms: int, expected_ms: int
) -> None:
    hmac = controller.create_token().hmac
    controller.now_ms += 500
    assert controller.renew(hmac, asked_ms) == (ErrorCode.NONE, START_MS + 500 + expected_ms)
    (token,) = controller.image.tokens.values()
    assert token.expiration_timestamp == START_MS + 500 + expected_ms
    assert token.max_timestamp == START_MS + LIFETIME_MS


def test_nobody_lives_beyond_the_end(controller: Controller) -> None:
    hmac = controller.create_token().hmac
    end_ms = START_MS + LIFETIME_MS
    for _ in range(2):
        controller.now_ms += PERIOD_MS - 500
        expiry = controller.renew(hmac)
    assert expiry == (ErrorCode.NONE, end_ms)
    assert controller.expire(hmac, LIFETIME_MS) == (ErrorCode.NONE, end_ms)


def test_who_has_expired_comes_back_no_more_but_may_be_removed(controller: Controller) -> None:
    answer = controller.create_token()
    controller.now_ms = answer.expiry_timestamp_ms
    assert controller.expire(answer.hmac, PERIOD_MS)[0] is ErrorCode.NONE, "the last moment"
    assert controller.expire(answer.hmac, 0) == (ErrorCode.NONE, controller.now_ms)
    assert tokens.expired_tokens(controller.image, controller.now_ms) == []
    controller.now_ms += 1
    assert controller.renew(answer.hmac) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, tokens.NEVER)
    assert controller.expire(answer.hmac, 5) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, tokens.NEVER)
    (removal,) = tokens.expired_tokens(controller.image, controller.now_ms)
    assert removal.token_id == answer.token_id
    assert controller.expire(answer.hmac, -1)[0] is ErrorCode.NONE
    assert not controller.image.tokens


def test_nobody_fills_the_metadata_with_tokens(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "TOKENS_OF_A_REQUESTER_MAX", 2)
    first = controller.create_token()
    assert controller.create_token().error_code is ErrorCode.NONE
    before = controller.view.image
    assert controller.create_token().error_code is ErrorCode.POLICY_VIOLATION
    assert controller.as_(ANN).create_token(BOB).error_code is ErrorCode.POLICY_VIOLATION
    assert controller.view.image.tokens == before.tokens
    assert controller.as_(BOB).create_token().error_code is ErrorCode.NONE
    controller.as_(ANN).expire(first.hmac, -1)
    assert controller.create_token().error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    "renewers",
    [
        [Principal("User", f"renewer-{number}") for number in range(tokens.RENEWERS_MAX + 1)],
        [Principal("User", "r" * (tokens.RENEWER_CHARACTERS_MAX + 1))],
    ],
    ids=["many", "long"],
)
def test_a_token_has_no_more_renewers_than_it_may(controller: Controller, renewers: list[Principal]) -> None:
    assert controller.create_token(None, *renewers).error_code is ErrorCode.POLICY_VIOLATION
    assert not controller.view.image.tokens


def test_a_secret_that_is_none_costs_no_more_with_more_tokens(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [controller.create_token() for _ in range(20)]
    assert controller.renew(b"nothing" * 9)[0] is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    hashed: list[str] = []
    make = TokenKeys.hmac

    def counted(keys: TokenKeys, token_id: str) -> bytes:
        hashed.append(token_id)
        return make(keys, token_id)

    monkeypatch.setattr(TokenKeys, "hmac", counted)
    assert controller.renew(b"something" * 7)[0] is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert controller.renew(made[3].hmac)[0] is ErrorCode.NONE
    assert controller.expire(made[3].hmac, -1)[0] is ErrorCode.NONE
    assert controller.renew(made[3].hmac)[0] is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert hashed == []
