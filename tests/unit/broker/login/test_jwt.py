"""Signed tokens count if the right issuer made them. Its keys are read again, but not by each login."""

import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from tests.support.group_world import ManualClock

from ottla.broker.login import jwt as module
from ottla.broker.login.jwt import UNKNOWN_KEY_MS, JwtValidator
from ottla.broker.login.mechanisms import MechanismRefused
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.configs.load import load_node_config
from ottla.runtime.identity_provider import JwksUnavailable
from ottla.security.sasl.oauthbearer import InvalidToken

URL = "https://issuer.example/jwks"
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("old", "new")}
PREFIX = "listener.name.sasl_ssl.oauthbearer.sasl.oauthbearer."
SETTINGS = {
    f"{PREFIX}jwks.endpoint.url": URL,
    f"{PREFIX}expected.audience": "kafka",
    f"{PREFIX}expected.issuer": "https://issuer.example",
}
REFRESH_MS = 3_600_000


def jwks(*names: str) -> bytes:
    """Return the public keys as an issuer publishes them."""
    keys = []
    for name in names:
        public = json.loads(ECAlgorithm.to_jwk(KEYS[name].public_key()))
        keys.append({**public, "kid": name, "alg": "ES256", "use": "sig"})
    return json.dumps({"keys": keys}).encode()


def token(key: str = "old", *, signed_by: str = "", algorithm: str = "ES256", **claims: Any) -> str:
    now_s = time.time()
    claims = {
        "sub": "ann",
        "aud": "kafka",
        "iss": "https://issuer.example",
        "iat": now_s - 5,
        "exp": now_s + 600,
        **claims,
    }
    present = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(present, KEYS[signed_by or key], algorithm=algorithm, headers={"kid": key})


class World:
    """A validator whose issuer and whose time the test plays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
        self.clock = ManualClock(monotonic_ms=10_000_000)
        self.content: bytes | Exception = jwks("old")
        self.works: list[tuple[Callable[[], object], Callable[[Exception | None], None]]] = []
        monkeypatch.setattr(module, "read_jwks", self._read)
        config = load_node_config(b"", {**SETTINGS, **settings}).configs
        self.validator = JwtValidator(
            ListenerConfig(config, "SASL_SSL"),
            "OAUTHBEARER",
            self.clock,
            lambda work, done: self.works.append((work, done)),
        )

    def _read(self, url: str) -> bytes:
        assert url == URL
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def work(self) -> int:
        """Let what was begun be done, and tell how much it was."""
        works, self.works = self.works, []
        for work, done in works:
            try:
                work()
            except Exception as error:
                done(error)
            else:
                done(None)
        return len(works)

    def refused(self, asked: str) -> str:
        with pytest.raises(InvalidToken) as error:
            self.validator(asked)
        return str(error.value)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(monkeypatch)
    assert world.work() == 1
    return world


def test_a_token_of_the_issuer_says_who_it_is_and_until_when(world: World) -> None:
    expires_s = int(time.time()) + 300
    identity = world.validator(token(exp=expires_s))
    assert (identity.name, identity.expires_ms) == ("ann", 1000 * expires_s)


@pytest.mark.parametrize(
    ("claims", "complaint"),
    [
        ({"aud": "others"}, "not valid"),
        ({"aud": None}, "not valid"),
        ({"iss": "https://elsewhere.example"}, "not valid"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "4000000000"}, "'exp' is not a time"),
        ({"exp": 1e300}, "'exp' is not a time"),
        ({"iat": None}, "iat"),
        ({"sub": None}, "no claim 'sub'"),
        ({"sub": ""}, "no claim 'sub'"),
    ],
)
def test_other_tokens_are_refused(world: World, claims: dict[str, Any], complaint: str) -> None:
    assert complaint in world.refused(token(**claims))


def test_a_token_that_another_key_has_signed_is_refused(world: World) -> None:
    assert "not valid" in world.refused(token(signed_by="new"))
    assert "not valid" in world.refused("no token at all")


def test_no_token_counts_while_there_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    assert "no key of" in world.refused(token())
    world.work()
    assert world.validator(token()).name == "ann"


def test_an_unknown_key_has_the_keys_read_again_but_not_for_each_login(world: World) -> None:
    world.content = jwks("old", "new")
    assert "no key of" in world.refused(token("new"))
    assert not world.works, "they were read just now"
    world.clock.advance(UNKNOWN_KEY_MS + 1)
    for _ in range(3):
        world.refused(token("new"))
    assert world.work() == 1
    assert world.validator(token("new")).name == "ann"
    for _ in range(3):
        world.clock.advance(UNKNOWN_KEY_MS // 3)
        world.refused(token("third", signed_by="new"))
    assert not world.works
    world.clock.advance(2)
    world.refused(token("third", signed_by="new"))
    assert world.work() == 1


def test_keys_are_read_again_when_they_are_old_and_a_lost_key_counts_no_more(world: World) -> None:
    world.clock.advance(REFRESH_MS)
    world.validator(token())
    assert not world.works
    world.clock.advance(1)
    world.content = jwks("new")
    assert world.validator(token()).name == "ann", "nobody waits for it"
    assert world.work() == 1
    assert "no key of" in world.refused(token())
    assert world.validator(token("new")).name == "ann"
    assert not world.works


@pytest.mark.parametrize("content", [b"[]", b"{}", b"not json", JwksUnavailable("it is down")])
def test_an_issuer_that_fails_takes_no_keys_away(world: World, content: bytes | Exception) -> None:
    world.content = content
    world.clock.advance(REFRESH_MS + 1)
    world.validator(token())
    assert world.work() == 1
    assert world.validator(token()).name == "ann"
    world.clock.advance(REFRESH_MS + 1)
    world.validator(token())
    assert world.work() == 1, "it is asked again"


def test_keys_in_a_file_are_there_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.broker.login.test_jwt.URL", "file:/keys.json")
    world = World(monkeypatch, **{f"{PREFIX}jwks.endpoint.url": "file:/keys.json"})
    assert not world.works
    assert world.validator(token()).name == "ann"


def test_a_file_without_keys_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_jwks", lambda _url: b"{}")
    settings = {**SETTINGS, f"{PREFIX}jwks.endpoint.url": "file:/keys.json"}
    config = ListenerConfig(load_node_config(b"", settings).configs, "SASL_SSL")
    with pytest.raises(MechanismRefused, match="SASL_SSL"):
        JwtValidator(config, "OAUTHBEARER", ManualClock(), lambda *_: None)


def test_without_an_issuer_nothing_could_be_checked() -> None:
    config = ListenerConfig(load_node_config(b"", {}).configs, "SASL_SSL")
    with pytest.raises(MechanismRefused, match=r"jwks\.endpoint\.url is not set"):
        JwtValidator(config, "OAUTHBEARER", ManualClock(), lambda *_: None)


def test_the_subject_may_be_another_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, **{f"{PREFIX}sub.claim.name": "email"})
    world.work()
    assert world.validator(token(email="ann@example.org")).name == "ann@example.org"
    assert "no claim 'email'" in world.refused(token())
