"""SCRAM as RFC 7677 shows it, a server that must not be trusted, and tokens of a provider."""

import base64
import json
from collections.abc import Iterable

import pytest

from ottla.wire.sasl.bearer_tokens import NoBearerToken, TokenSource, expiry_ms, fresh_until_ms
from ottla.wire.sasl.login import BearerLogin, ScramLogin, UntrustedServer

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _talk(answers: Iterable[bytes], username: str = "user") -> list[bytes]:
    login = ScramLogin("SCRAM-SHA-256", username, "pencil", NONCE)
    said = [login.first()]
    for answer in answers:
        token = login.receive(answer)
        if token is not None:
            said.append(token)
    return said


def test_both_sides_prove_the_password_as_in_the_rfc() -> None:
    assert _talk([SERVER_FIRST, SERVER_FINAL]) == [
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        (
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        ),
    ]


def test_a_name_with_signs_of_its_own_is_escaped() -> None:
    assert _talk([], "a=b,c") == [b"n,,n=a=3Db=2Cc,r=rOprNGfwEbeRWgbNEkqO"]


def test_a_delegation_token_says_that_it_is_one() -> None:
    login = ScramLogin("SCRAM-SHA-256", "id", "pencil", NONCE, is_token=True)
    assert login.first() == b"n,,n=id,r=rOprNGfwEbeRWgbNEkqO,tokenauth=true"


@pytest.mark.parametrize(
    ("first", "final", "reason"),
    [
        (SERVER_FIRST, b"v=AAAA", "could not prove"),
        (SERVER_FIRST, b"e=other-error", "could not prove"),
        (SERVER_FIRST, b"v=not base64", "invalid SCRAM message"),
        (SERVER_FIRST.replace(b"r=rO", b"r=xx"), b"", "wrong SCRAM nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", b"", "wrong SCRAM nonce"),
        (SERVER_FIRST.replace(b"i=4096", b"i=1"), b"", "1 SCRAM iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=9999999"), b"", "9999999 SCRAM iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=" + b"9" * 5000), b"", "invalid SCRAM message"),
        (SERVER_FIRST.replace(b"i=4096", b"i=-4096"), b"", "invalid SCRAM message"),
        (SERVER_FIRST.replace(b"s=W2", b"s=*"), b"", "invalid SCRAM message"),
        (b"\xff\xfe", b"", "invalid SCRAM message"),
        (b"", b"", "invalid SCRAM message"),
    ],
)
def test_a_server_that_answers_wrongly_is_not_trusted(first: bytes, final: bytes, reason: str) -> None:
    with pytest.raises(UntrustedServer, match=reason):
        _talk([first, final])


def test_a_bearer_shows_its_token_and_acknowledges_a_refusal() -> None:
    login = BearerLogin("abc.def.ghi")
    assert login.first() == b"n,,\x01auth=Bearer abc.def.ghi\x01\x01"
    assert login.receive(b"") is None
    assert login.receive(b'{"status":"invalid_token"}') == b"\x01"


def test_a_provider_is_asked_as_rfc_6749_says() -> None:
    source = TokenSource("https://idp.example/token", "my client", "s:cret", "a b")
    assert source.find_fault() is None
    assert source.body() == b"grant_type=client_credentials&scope=a+b"
    kind, _, given = source.headers()["Authorization"].partition(" ")
    assert (kind, base64.b64decode(given)) == ("Basic", b"my+client:s%3Acret")
    assert source.token_of(b'{"access_token": "abc", "expires_in": 3600}') == "abc"
    assert "cret" not in repr(source)


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"{}", b'{"access_token": 1}', b'{"access_token": "a\\u0001"}', b"\xff"]
)
def test_an_answer_without_a_token_is_told(answer: bytes) -> None:
    with pytest.raises(NoBearerToken, match=r"https://idp\.example has no token"):
        TokenSource("https://idp.example").token_of(answer)


@pytest.mark.parametrize("source", [TokenSource(""), TokenSource("ftp://x"), TokenSource("https://x", "id")])
def test_what_is_missing_is_told(source: TokenSource) -> None:
    assert source.find_fault() is not None


def test_a_token_is_replaced_before_it_expires() -> None:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": 2000}).encode()).decode().rstrip("=")
    token = f"e30.{payload}.x"
    assert expiry_ms(token) == 2_000_000
    assert fresh_until_ms(token, 1_000_000) == 1_800_000


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "a.e30.c", "a.bnVsbA.c", "a.W10.c"])
def test_a_token_that_does_not_say_when_it_expires(token: str) -> None:
    assert expiry_ms(token) is None
    assert fresh_until_ms(token, 0) is None
