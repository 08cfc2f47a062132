"""Tokens that nobody has signed: for development, since anybody can be anybody.

Kafka's server accepts them by default if OAUTHBEARER is enabled and nothing else is said. Ottla accepts them
only where the login module's options show that they are meant, and warns when it starts.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from ottla.security.sasl.mechanism import Identity
from ottla.security.sasl.oauthbearer import InvalidToken, Validate, time_ms_of


def unsecured_validator(options: Mapping[str, str], now_ms: Callable[[], int]) -> Validate:
    """Return what checks such tokens, by the options of the login module."""
    principal_claim = options.get("unsecuredValidatorPrincipalClaimName", "sub")
    scope_claim = options.get("unsecuredValidatorScopeClaimName", "scope")
    required = options.get("unsecuredValidatorRequiredScope", "").split()
    skew_ms = int(options.get("unsecuredValidatorAllowableClockSkewMs", "0"))

    def validate(token: str) -> Identity:
        claims = _claims(token)
        now = now_ms()
        name = claims.get(principal_claim)
        if not isinstance(name, str) or not name:
            raise InvalidToken(f"the token has no claim {principal_claim!r}")
        expires_ms = _time_ms(claims, "exp", is_required=True)
        issued_ms = _time_ms(claims, "iat", is_required=False)
        if expires_ms <= now - skew_ms:
            raise InvalidToken("the token has expired")
        if issued_ms > now + skew_ms or issued_ms >= expires_ms:
            raise InvalidToken("the token was issued in the future")
        scopes = claims.get(scope_claim, ())
        scopes = scopes.split() if isinstance(scopes, str) else scopes
        if not isinstance(scopes, list | tuple) or any(scope not in scopes for scope in required):
            raise InvalidToken("a scope is missing", "insufficient_scope", " ".join(required))
        return Identity(name, expires_ms)

    return validate


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("the token does not have three parts")
    header, claims = (_decoded(part) for part in parts[:2])
    if header.get("alg") != "none" or parts[2]:
        raise InvalidToken("the token is signed, but this listener takes tokens without a signature only")
    return claims


def _decoded(part: str) -> dict[str, Any]:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidToken("the token is not base64 of JSON") from error
    if not isinstance(value, dict):
        raise InvalidToken("the token is not a JSON object")
    return value


def _time_ms(claims: Mapping[str, Any], name: str, *, is_required: bool) -> int:
    value = claims.get(name)
    if value is None and not is_required:
        return 0
    return time_ms_of(value, name)
