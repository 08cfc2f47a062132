"""SCRAM as RFC 7677 shows it, and a server that must not be trusted."""

import asyncio
from collections.abc import Iterable

import pytest

from ottla.client.errors import AuthenticationFailed
from ottla.client.security import scram

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _talk(answers: Iterable[bytes], username: str = "user") -> list[bytes]:
    said: list[bytes] = []
    left = iter(answers)

    async def exchange(token: bytes) -> bytes:
        said.append(token)
        return next(left)

    asyncio.run(scram(exchange, "SCRAM-SHA-256", username, "pencil", NONCE))
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
    said: list[bytes] = []

    async def exchange(token: bytes) -> bytes:
        said.append(token)
        raise AuthenticationFailed("enough")

    with pytest.raises(AuthenticationFailed):
        asyncio.run(scram(exchange, "SCRAM-SHA-512", "a=b,c", "pencil", NONCE))
    assert said == [b"n,,n=a=3Db=2Cc,r=rOprNGfwEbeRWgbNEkqO"]


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
    with pytest.raises(AuthenticationFailed, match=reason):
        _talk([first, final])
