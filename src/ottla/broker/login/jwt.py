"""Signed tokens (JWT), checked with the public keys of an issuer: signature, audience, issuer and times.

The keys are read by a worker, again and again, and once more when a token names a key that is not known. A
token is never accepted while there are no keys. The library is PyJWT, which `ottla[security]` brings.
"""

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.login.mechanisms import MechanismRefused
from ottla.metadata.configs.listener import ListenerConfig
from ottla.runtime.identity_provider import JwksUnavailable, read_jwks
from ottla.security.sasl.mechanism import Identity
from ottla.security.sasl.oauthbearer import InvalidToken, time_ms_of
from ottla.world.clock import Clock
from ottla.world.workers import Run

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""With a public key only: a shared secret would be one that anybody can read."""
UNKNOWN_KEY_MS: Final = 60_000
"""How often the keys are read again because a token names one that is not known."""
_logger: Final = logging.getLogger("ottla.login")


class JwtValidator:
    """What checks the tokens of one listener."""

    def __init__(self, config: ListenerConfig, mechanism: str, clock: Clock, run: Run) -> None:
        try:
            import jwt
        except ImportError as error:
            raise MechanismRefused(
                f"listener {config.listener} enables OAUTHBEARER with signed tokens: install "
                "`ottla[security]`"
            ) from error
        self._jwt = jwt
        url = config.value("sasl.oauthbearer.jwks.endpoint.url", mechanism)
        if not url:
            # Without it Kafka 4.3.1 would accept every token (CVE-2026-110985).
            raise MechanismRefused(
                f"listener {config.listener} checks signed tokens, but sasl.oauthbearer.jwks.endpoint.url is "
                "not set: no token could be checked"
            )
        self._url = str(url)
        self._audience = config.value("sasl.oauthbearer.expected.audience", mechanism)
        self._issuer = config.value("sasl.oauthbearer.expected.issuer", mechanism)
        self._skew_s = config.value("sasl.oauthbearer.clock.skew.seconds", mechanism)
        self._subject_claim = config.value("sasl.oauthbearer.sub.claim.name", mechanism)
        self._refresh_ms = config.value("sasl.oauthbearer.jwks.endpoint.refresh.ms", mechanism)
        self._clock = clock
        self._run = run
        self._keys: dict[str | None, PyJWK] = {}
        self._read_ms = 0
        self._is_reading = False
        self._listener = config.listener
        if self._url.startswith("file:"):
            # It takes no time, and shows at the start what is wrong.
            try:
                self._keys = self._parse(read_jwks(self._url))
            except (JwksUnavailable, InvalidToken) as error:
                raise MechanismRefused(f"listener {config.listener}: {error}") from error
            self._read_ms = clock.monotonic_ms()
        else:
            self._read_again()

    def __call__(self, token: str) -> Identity:
        """Return whose token it is. Raises `InvalidToken`."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._read_ms > self._refresh_ms:
            self._read_again()
        jwt = self._jwt
        try:
            header = jwt.get_unverified_header(token)
            key = self._keys.get(header.get("kid"))
            if key is None:
                if now_ms - self._read_ms > UNKNOWN_KEY_MS:
                    self._read_again()
                raise InvalidToken(f"no key of {self._url} has the id {header.get('kid')!r}")
            claims: dict[str, Any] = jwt.decode(
                token,
                key=key,
                algorithms=list(ALGORITHMS),
                audience=list(self._audience) if self._audience else None,
                issuer=self._issuer,
                leeway=self._skew_s,
                options={"require": ["exp", "iat"], "verify_aud": bool(self._audience)},
            )
        except jwt.PyJWTError as error:
            raise InvalidToken(f"the token is not valid: {error}") from error
        name = claims.get(self._subject_claim)
        if not isinstance(name, str) or not name:
            raise InvalidToken(f"the token has no claim {self._subject_claim!r}")
        return Identity(name, time_ms_of(claims["exp"], "exp"))

    def _read_again(self) -> None:
        if self._is_reading:
            return
        self._is_reading = True
        self._read_ms = self._clock.monotonic_ms()
        found: list[bytes] = []

        def done(error: Exception | None) -> None:
            self._is_reading = False
            try:
                if error is not None:
                    raise error
                self._keys = self._parse(found[0])
            except (JwksUnavailable, InvalidToken) as reason:
                _logger.warning("listener %s keeps the keys it has: %s", self._listener, reason)

        self._run(lambda: found.append(read_jwks(self._url)), done)

    def _parse(self, content: bytes) -> "dict[str | None, PyJWK]":
        try:
            keys = self._jwt.PyJWKSet.from_dict(json.loads(content)).keys
        except (ValueError, TypeError, AttributeError, self._jwt.PyJWTError) as error:
            raise InvalidToken(f"{self._url} has no keys that can be used: {error}") from error
        return {key.key_id: key for key in keys}
