"""The tokens of OAUTHBEARER that a client logs in with: read when needed, and kept while they are fresh."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ottla.client.errors import AuthenticationFailed
from ottla.client.properties import CommonSettings, InvalidProperty
from ottla.wire.sasl.bearer_tokens import (
    ANSWER_BYTES_MAX,
    SECONDS_MAX,
    NoBearerToken,
    TokenSource,
    fresh_until_ms,
)
from ottla.wire.sasl.login import BearerLogin

if TYPE_CHECKING:
    from ottla.client.security import MakeLogin


def bearer_login_maker(settings: CommonSettings) -> "MakeLogin":
    """Return what begins a login by OAUTHBEARER."""
    tokens = BearerTokens(
        TokenSource(
            settings.sasl_oauthbearer_token_endpoint_url,
            settings.sasl_oauthbearer_client_credentials_client_id,
            settings.sasl_oauthbearer_client_credentials_client_secret,
            settings.sasl_oauthbearer_scope,
        )
    )

    async def make() -> BearerLogin:
        return BearerLogin(await tokens.current())

    return make


class BearerTokens:
    """The newest token of a client. All of its connections share it."""

    def __init__(self, source: TokenSource) -> None:
        if (fault := source.find_fault()) is not None:
            raise InvalidProperty(
                f"sasl.mechanism is OAUTHBEARER, but {fault}: set sasl.oauthbearer.token.endpoint.url, and "
                "for a provider sasl.oauthbearer.client.credentials.client.id and .client.secret"
            )
        self._source = source
        self._token = ""
        self._fresh_until_ms = 0
        self._lock = asyncio.Lock()

    async def current(self) -> str:
        """Return a token to log in with. Raises `AuthenticationFailed` if there is none."""
        async with self._lock:
            if _now_ms() >= self._fresh_until_ms:
                try:
                    self._token = await asyncio.to_thread(_read, self._source)
                except NoBearerToken as error:
                    raise AuthenticationFailed(f"there is no token for the login: {error}") from error
                self._fresh_until_ms = fresh_until_ms(self._token, _now_ms()) or 0
            return self._token


def _now_ms() -> int:
    return int(time.time() * 1000)


class _NoRedirections(HTTPRedirectHandler):
    """Lets redirections be errors: the secret of the client would go to wherever they lead."""

    def redirect_request(self, *_given: Any) -> None:
        """Follow nothing."""
        return


def _read(source: TokenSource) -> str:
    """Return a new token. This blocks."""
    try:
        if source.file is not None:
            return source.token_of(Path(source.file).read_bytes())
        request = Request(source.url, source.body(), source.headers())  # noqa: S310 - `find_fault` checks it
        with build_opener(_NoRedirections).open(request, timeout=SECONDS_MAX) as answer:
            return source.token_of(answer.read(ANSWER_BYTES_MAX))
    except (OSError, ValueError) as error:
        if isinstance(error, HTTPError):
            # It holds the connection open, as an answer does.
            error.close()
        raise NoBearerToken(f"{source.url} cannot be read: {error}") from error
