"""The server's side of SASL mechanisms, by the examples of the RFCs and by what must be refused."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable

import pytest

from ottla.security.jaas import InvalidJaas, parse_jaas
from ottla.security.sasl.disguise import disguise
from ottla.security.sasl.mechanism import Identity, LoginFailed
from ottla.security.sasl.oauthbearer import InvalidToken, OAuthBearerConversation
from ottla.security.sasl.plain import PlainConversation
from ottla.security.sasl.scram import ScramAccount, ScramConversation, derive_credential
from ottla.security.sasl.unsecured_jwt import unsecured_validator

NOW_MS = 1_800_000_000_000
KEY = b"a key for disguises"


# PLAIN


@pytest.mark.parametrize(
    "token",
    [
        b"\0alice\0wrong",
        b"\0bob\0secret",
        b"\0alice\0",
        b"\0\0secret",
        b"alice\0secret",
        b"",
        b"\xff\0a\0b",
        b"bob\0alice\0secret",
        b"\0alice\0secret\0more",
        b"\0Alice\0secret",
    ],
)
def test_plain_refuses(token: bytes) -> None:
    with pytest.raises(LoginFailed) as caught:
        PlainConversation({"alice": "secret"}).receive(token)
    assert "secret" not in f"{caught.value} {caught.value.message}"


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret"])
def test_plain_lets_in(token: bytes) -> None:
    challenge = PlainConversation({"alice": "secret"}).receive(token)
    assert (challenge.token, challenge.identity) == (b"", Identity("alice"))


def test_plain_says_the_same_for_an_unknown_user_and_a_wrong_password() -> None:
    messages = []
    for token in (b"\0alice\0wrong", b"\0nobody\0wrong"):
        with pytest.raises(LoginFailed) as caught:
            PlainConversation({"alice": "secret"}).receive(token)
        messages.append(caught.value.message)
    assert messages[0] == messages[1] == "Authentication failed: Invalid username or password"


# SCRAM: the example of RFC 7677, section 3

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)


def scram(first: bytes = FIRST, nonce: str = SERVER_NONCE) -> tuple[ScramConversation, bytes]:
    account = ScramAccount(derive_credential("SCRAM-SHA-256", b"pencil", SALT, 4096), Identity("user"))
    conversation = ScramConversation(
        "SCRAM-SHA-256",
        lambda user, is_token: account if user == "user" and not is_token else None,
        nonce,
        lambda user, _: disguise(user, (), KEY),
    )
    return conversation, conversation.receive(first).token


def test_scram_follows_the_example_of_the_rfc() -> None:
    conversation, challenge = scram()
    assert (
        challenge == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    last = conversation.receive(FINAL)
    assert last.token == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert last.identity == Identity("user")


@pytest.mark.parametrize(
    "final",
    [
        FINAL.replace(b"dHzb", b"dHzc"),
        FINAL.replace(b"hNlF$k0", b"hNlF$k1"),
        FINAL.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""),
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO,p=AAAA",
        b"c=biws,p=AAAA",
        b"",
        b"\xff",
    ],
)
def test_scram_refuses_a_wrong_proof_or_nonce(final: bytes) -> None:
    conversation, _ = scram()
    with pytest.raises(LoginFailed):
        conversation.receive(final)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"y,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,,n=,r=x",
        b"n,,n=user",
        b"n,,n=us=er,r=x",
        b"n,a=other,n=user,r=x",
        "n,,n=\u00fcser,r=x".encode(),
    ],
)
def test_scram_refuses_an_invalid_beginning(first: bytes) -> None:
    with pytest.raises(LoginFailed):
        scram(first)


def test_a_user_that_does_not_exist_gets_a_challenge_like_any_other() -> None:
    _, challenge = scram(b"n,,n=nobody,r=abc")
    _, again = scram(b"n,,n=nobody,r=abc")
    _, other = scram(b"n,,n=no=2Cbody,r=abc")
    assert challenge == again != other
    assert challenge.endswith(b",i=8192")
    conversation, _ = scram(b"n,,n=nobody,r=rOprNGfwEbeRWgbNEkqO")
    with pytest.raises(LoginFailed, match="wrong user or password"):
        conversation.receive(FINAL)


def test_a_token_is_no_user() -> None:
    conversation, _ = scram(FIRST + b",tokenauth=true")
    with pytest.raises(LoginFailed):
        conversation.receive(FINAL)


# OAUTHBEARER


def unsigned(claims: dict[str, object], algorithm: str = "none") -> str:
    parts = ({"alg": algorithm}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, ""])


CLAIMS: dict[str, object] = {"sub": "alice", "exp": NOW_MS / 1000 + 60, "iat": NOW_MS / 1000 - 1}


def oauth(**options: str) -> OAuthBearerConversation:
    return OAuthBearerConversation(unsecured_validator(options, lambda: NOW_MS))


def bearer(token: str, start: str = "n,,") -> bytes:
    return f"{start}\x01auth=Bearer {token}\x01\x01".encode()


def test_a_token_lets_in_until_it_expires() -> None:
    challenge = oauth().receive(bearer(unsigned(CLAIMS)))
    assert challenge.identity == Identity("alice", NOW_MS + 60_000)


@pytest.mark.parametrize(
    "claims",
    [
        {**CLAIMS, "exp": NOW_MS / 1000 - 1},
        {**CLAIMS, "iat": NOW_MS / 1000 + 9},
        {"exp": 1},
        {**CLAIMS, "sub": ""},
        {**CLAIMS, "exp": "soon"},
        {**CLAIMS, "exp": True},
        {"sub": "alice"},
    ],
)
def test_a_token_is_refused_in_two_steps(claims: dict[str, object]) -> None:
    conversation = oauth()
    refusal = conversation.receive(bearer(unsigned(claims)))
    assert (refusal.identity, refusal.token) == (None, b'{"status":"invalid_token"}')
    with pytest.raises(LoginFailed) as caught:
        conversation.receive(b"\x01")
    assert caught.value.message == '{"status":"invalid_token"}'


def test_a_signed_token_is_refused_where_none_is_expected() -> None:
    assert oauth().receive(bearer(unsigned(CLAIMS, "HS256"))).identity is None


def test_a_scope_that_is_missing_is_named() -> None:
    refusal = oauth(unsecuredValidatorRequiredScope="write").receive(bearer(unsigned(CLAIMS)))
    assert refusal.token == b'{"status":"insufficient_scope","scope":"write"}'


@pytest.mark.parametrize(
    "first", [b"", b"n,,", b"n,,\x01auth=Basic x\x01\x01", bearer(unsigned(CLAIMS), "n,a=bob,")]
)
def test_oauth_refuses_an_invalid_beginning(first: bytes) -> None:
    with pytest.raises(LoginFailed):
        oauth().receive(first)


def test_only_an_acknowledgement_may_follow_a_refusal() -> None:
    def refuse(_token: str) -> Identity:
        raise InvalidToken("never")

    conversation = OAuthBearerConversation(refuse)
    conversation.receive(bearer("abc"))
    with pytest.raises(LoginFailed, match="acknowledge"):
        conversation.receive(bearer("abc"))


# JAAS


def test_jaas_options_are_read() -> None:
    entry = parse_jaas('a.b.Module required username="a\\"b" user_x=\'y z\' user_y=plain;')
    assert entry.module == "a.b.Module"
    assert entry.options["username"] == 'a"b'
    assert entry.users == {"x": "y z", "y": "plain"}


@pytest.mark.parametrize(
    "text", ["", "Module", "Module required x", 'Module required x="secret"', "a required b=c d;"]
)
def test_what_is_no_jaas_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(InvalidJaas) as caught:
        parse_jaas(text)
    assert "secret" not in str(caught.value)


# Timing


def _steps(monkeypatch: pytest.MonkeyPatch, user: str) -> list[tuple[object, ...]]:
    """Log in with a wrong password, and return which costly steps were taken, with which sizes."""
    steps: list[tuple[object, ...]] = []

    def watched(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            steps.append((name, *(one if isinstance(one, str) else len(one) for one in given)))  # type: ignore[arg-type]
            return original(*given)

        return call

    credential = derive_credential("SCRAM-SHA-512", b"right", b"0123456789012345", 4096)
    account = ScramAccount(credential, Identity("alice"))
    conversation = ScramConversation(
        "SCRAM-SHA-512",
        lambda name, _: account if name == "alice" else None,
        "server",
        lambda name, _: disguise(name, (credential,), KEY),
    )
    with monkeypatch.context() as patch:
        for module, name in ((hmac, "digest"), (hmac, "compare_digest"), (hashlib, "new")):
            patch.setattr(module, name, watched(name, getattr(module, name)))
        conversation.receive(f"n,,n={user},r=abc".encode())
        with pytest.raises(LoginFailed):
            conversation.receive(b"c=biws,r=abcserver,p=" + base64.b64encode(bytes(64)))
    return steps


def test_a_wrong_user_takes_the_same_steps_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = _steps(monkeypatch, "alice")
    assert steps == _steps(monkeypatch, "nobod")
    assert len(steps) >= 5


@pytest.mark.parametrize("salt", [bytes(range(32)), b"1p9xk3o2m4n5b6v7c8x9z0asdf", bytes(100)])
def test_the_salt_of_a_user_that_does_not_exist_looks_like_any_other(salt: bytes) -> None:
    model = derive_credential("SCRAM-SHA-512", b"right", salt, 5000)
    made = disguise("nobody", (model,), KEY)
    assert len(made.salt) == len(salt)
    assert made.salt != salt
    assert made.salt.isalnum() == salt.isalnum()
    assert made.iterations == 5000
