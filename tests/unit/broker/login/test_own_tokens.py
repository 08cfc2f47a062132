"""A node that logs in by tokens has one in time, and survives a provider that does not answer."""

import base64
import json
from collections.abc import Callable

import pytest

from ottla.broker.login.own_tokens import AGAIN_MS, OwnTokens
from ottla.wire.sasl.bearer_tokens import NoBearerToken, TokenSource


class World:
    """A clock, a provider, and workers that do their work when they are told to."""

    def __init__(self) -> None:
        self.ms = 1_000_000
        self.waiting: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []
        self.lifetime_s = 100
        self.is_down = False
        self.read = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    def monotonic_ns(self) -> int:
        return self.ms * 1_000_000

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        self.waiting.append((work, done))

    def work(self) -> None:
        for work, done in self.waiting:
            try:
                work()
                error = None
            except NoBearerToken as failed:
                error = failed
            done(error)
        self.waiting = []

    def token(self, _source: TokenSource) -> str:
        self.read += 1
        if self.is_down:
            raise NoBearerToken("it is down")
        claims = {"exp": self.ms // 1000 + self.lifetime_s}
        payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        return f"{self.read}.{payload}."


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def tokens(world: World) -> OwnTokens:
    return OwnTokens(TokenSource("https://idp.example/token"), world, world.run, world.token)


def test_there_is_none_before_the_first_was_read(world: World, tokens: OwnTokens) -> None:
    with pytest.raises(NoBearerToken, match="was not read yet"):
        tokens.current()
    world.work()
    assert tokens.current().startswith("1.")


def test_a_token_is_replaced_before_it_expires(world: World, tokens: OwnTokens) -> None:
    world.work()
    world.ms += 79_000
    tokens.current()
    assert not world.waiting
    world.ms += 2_000
    assert tokens.current().startswith("1."), "it holds while the next one is read"
    assert len(world.waiting) == 1
    tokens.current()
    assert len(world.waiting) == 1, "one is enough"
    world.work()
    assert tokens.current().startswith("2.")


def test_a_provider_that_is_down_is_asked_again_later(world: World, tokens: OwnTokens) -> None:
    world.is_down = True
    world.work()
    with pytest.raises(NoBearerToken):
        tokens.current()
    assert not world.waiting, "not at once"
    world.is_down = False
    world.ms += AGAIN_MS
    with pytest.raises(NoBearerToken):
        tokens.current()
    world.work()
    assert tokens.current()


def test_an_expired_token_is_not_shown(world: World, tokens: OwnTokens) -> None:
    world.work()
    world.is_down = True
    world.ms += 100_000
    with pytest.raises(NoBearerToken):
        tokens.current()
