"""Tokens that nobody has signed are read with care all the same: a strange one is refused, and no bug."""

import base64
import json
from typing import Any

import pytest

from ottla.security.sasl.oauthbearer import InvalidToken
from ottla.security.sasl.unsecured_jwt import unsecured_validator

NOW_MS = 1_000_000


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def token(header: Any = None, signature: str = "", **claims: Any) -> str:
    claims = {"sub": "ann", "exp": NOW_MS / 1000 + 60, **claims}
    present = {name: value for name, value in claims.items() if value is not None}
    return f"{part(header or {'alg': 'none'})}.{part(present)}.{signature}"


def read(asked: str, **options: str) -> tuple[str, int | None]:
    options = {f"unsecuredValidator{name}": value for name, value in options.items()}
    identity = unsecured_validator(options, lambda: NOW_MS)(asked)
    return identity.name, identity.expires_ms


def refused(asked: str, **options: str) -> InvalidToken:
    with pytest.raises(InvalidToken) as error:
        read(asked, **options)
    return error.value


def test_a_token_says_who_it_is_and_until_when() -> None:
    assert read(token()) == ("ann", NOW_MS + 60_000)
    assert read(token(iat=NOW_MS / 1000)) == ("ann", NOW_MS + 60_000)
    assert read(token(email="ann@example.org"), PrincipalClaimName="email")[0] == "ann@example.org"


@pytest.mark.parametrize("claims", [{"sub": None}, {"sub": ""}, {"sub": 7}])
def test_a_token_without_a_name_is_refused(claims: dict[str, Any]) -> None:
    assert "no claim 'sub'" in str(refused(token(**claims)))


@pytest.mark.parametrize(
    "time", [None, "soon", True, [], float("inf"), float("-inf"), float("nan"), 1e300], ids=repr
)
def test_a_token_without_an_end_is_refused(time: Any) -> None:
    assert "'exp' is not a time" in str(refused(token(exp=time)))


@pytest.mark.parametrize("time", ["long ago", False, float("nan")], ids=repr)
def test_a_beginning_may_be_missing_but_is_a_time(time: Any) -> None:
    assert "'iat' is not a time" in str(refused(token(iat=time)))


def test_tokens_last_from_their_beginning_to_their_end() -> None:
    now_s = NOW_MS / 1000
    assert "expired" in str(refused(token(exp=now_s)))
    assert read(token(exp=now_s + 0.001))
    assert "in the future" in str(refused(token(iat=now_s + 0.001)))
    assert "in the future" in str(
        refused(token(iat=now_s + 60, exp=now_s + 60), AllowableClockSkewMs="60000")
    )
    assert read(token(iat=now_s + 5), AllowableClockSkewMs="5000")
    assert read(token(exp=now_s - 4.999), AllowableClockSkewMs="5000")
    assert "expired" in str(refused(token(exp=now_s - 5), AllowableClockSkewMs="5000"))


@pytest.mark.parametrize("scope", ["read write", ["write", "read"], "write  read  more"], ids=repr)
def test_all_scopes_that_are_required_must_be_there(scope: Any) -> None:
    assert read(token(scope=scope), RequiredScope="read write")
    error = refused(token(scope=scope), RequiredScope="read delete")
    assert (error.status, error.scope) == ("insufficient_scope", "read delete")
    assert read(token(scp=scope), RequiredScope="read", ScopeClaimName="scp")


@pytest.mark.parametrize("scope", [None, 5, {}, [["read"]], [{}], "", True], ids=repr)
def test_other_scopes_are_none(scope: Any) -> None:
    assert "scope" in str(refused(token(scope=scope), RequiredScope="read"))


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "a.b",
        "a.b.c.d",
        f"{part({'alg': 'none'})}.!!!.",
        f"{part({'alg': 'none'})}.{part([])}.",
        f"{part({'alg': 'none'})}.{'W1tb' * 100_000}.",
        token({"alg": "HS256"}),
        token(signature="x"),
        token({"typ": "JWT"}),
    ],
    ids=lambda asked: asked[:30],
)
def test_what_is_no_such_token_is_refused(asked: str) -> None:
    refused(asked)
