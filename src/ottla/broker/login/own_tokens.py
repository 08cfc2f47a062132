"""The token by which this node logs in to others (OAUTHBEARER), replaced in time by a worker."""

import base64
import json
import logging
from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.login.mechanisms import MechanismRefused, jaas_of
from ottla.metadata.configs.listener import ListenerConfig
from ottla.runtime.identity_provider import read_bearer_token
from ottla.wire.sasl.bearer_tokens import NoBearerToken, TokenSource, expiry_ms, fresh_until_ms
from ottla.wire.sasl.login import BearerLogin
from ottla.world.clock import Clock
from ottla.world.workers import Run

NAME: Final = "OAUTHBEARER"
AGAIN_MS: Final = 10_000
"""How long to wait after a token could not be read, or after one that does not say when it expires."""
_CREDENTIALS: Final = "sasl.oauthbearer.client.credentials.client"
_logger: Final = logging.getLogger("ottla.login")


def bearer_login_maker(config: ListenerConfig, clock: Clock, run: Run) -> Callable[[], BearerLogin]:
    """Return what begins a login on a listener of another node. Raises `MechanismRefused`."""
    jaas = jaas_of(config, NAME)
    options = {} if jaas is None else jaas.options
    url = config.value("sasl.oauthbearer.token.endpoint.url", NAME)
    if not url and (claims := _unsecured_claims(options)):
        return lambda: BearerLogin(_unsecured_token(claims, options, clock.now_ms()))
    source = TokenSource(
        url or "",
        config.value("sasl.oauthbearer.client.credentials.client.id", NAME) or options.get("clientId", ""),
        config.secret("sasl.oauthbearer.client.credentials.client.secret", NAME)
        or options.get("clientSecret", ""),
        config.value("sasl.oauthbearer.scope", NAME) or options.get("scope", ""),
    )
    if (fault := source.find_fault()) is not None:
        raise MechanismRefused(
            f"nodes are to log in on listener {config.listener} by {NAME}, but {fault}: set "
            f"sasl.oauthbearer.token.endpoint.url, and for a provider {_CREDENTIALS}.id and .secret"
        )
    tokens = OwnTokens(source, clock, run)
    return lambda: BearerLogin(tokens.current())


class OwnTokens:
    """The newest token of this node."""

    def __init__(
        self,
        source: TokenSource,
        clock: Clock,
        run: Run,
        read: Callable[[TokenSource], str] = read_bearer_token,
    ) -> None:
        self._source = source
        self._clock = clock
        self._run = run
        self._read = read
        self._token = ""
        self._expires_ms: int | None = None
        self._read_again_ms = 0
        self._is_reading = False
        self._maybe_read()

    def current(self) -> str:
        """Return a token. Raises `NoBearerToken` while there is none."""
        self._maybe_read()
        if not self._token or (self._expires_ms is not None and self._expires_ms <= self._clock.now_ms()):
            raise NoBearerToken(f"{self._source.url} was not read yet")
        return self._token

    def _maybe_read(self) -> None:
        if self._is_reading or self._clock.now_ms() < self._read_again_ms:
            return
        self._is_reading = True
        found: list[str] = []

        def done(error: Exception | None) -> None:
            self._is_reading = False
            now_ms = self._clock.now_ms()
            self._read_again_ms = now_ms + AGAIN_MS
            if error is not None:
                _logger.warning("there is no new token for logins at other nodes: %s", error)
                return
            self._token = found[0]
            self._expires_ms = expiry_ms(self._token)
            self._read_again_ms = fresh_until_ms(self._token, now_ms) or self._read_again_ms

        self._run(lambda: found.append(self._read(self._source)), done)


def _unsecured_claims(options: Mapping[str, str]) -> dict[str, str]:
    prefix = "unsecuredLoginStringClaim_"
    return {key.removeprefix(prefix): text for key, text in options.items() if key.startswith(prefix)}


def _unsecured_token(claims: Mapping[str, str], options: Mapping[str, str], now_ms: int) -> str:
    """Return a token without a signature, as Kafka's own login module makes it for development."""
    seconds = int(options.get("unsecuredLoginLifetimeSeconds", "3600"))
    issued_s = now_ms / 1000
    payload = {**claims, "iat": issued_s, "exp": issued_s + seconds}
    parts = ({"alg": "none"}, payload)
    encoded = (
        base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).rstrip(b"=").decode()
        for part in parts
    )
    return ".".join((*encoded, ""))
