"""What a node asks of an identity provider: the keys that tokens are signed with, and tokens of its own.

Both may also be in a file. All of this blocks.
"""

from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ottla.wire.sasl.bearer_tokens import ANSWER_BYTES_MAX, SECONDS_MAX, NoBearerToken, TokenSource

_SCHEMES: Final = ("http", "https")


class JwksUnavailable(Exception):
    """The keys cannot be read."""


def read_jwks(url: str) -> bytes:
    """Return the public keys that tokens are signed with (JWKS)."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return _read_file(parts.path)
        if parts.scheme not in _SCHEMES:
            raise JwksUnavailable(f"{url} is not a file:, http: or https: URL")
        return _ask(Request(url, headers={"Accept": "application/json"}))  # noqa: S310 - checked above
    except (OSError, ValueError) as error:
        raise JwksUnavailable(f"{url} cannot be read: {error}") from error


def read_bearer_token(source: TokenSource) -> str:
    """Return a token for this node."""
    try:
        if source.file is not None:
            return source.token_of(_read_file(source.file))
        request = Request(source.url, source.body(), source.headers())  # noqa: S310 - `find_fault` checks it
        return source.token_of(_ask(request))
    except (OSError, ValueError) as error:
        raise NoBearerToken(f"{source.url} cannot be read: {error}") from error


class _Redirections(HTTPRedirectHandler):
    """Follows none with a secret of ours, which would go to wherever they lead, and none out of TLS."""

    def redirect_request(self, request: Request, *given: Any) -> Request | None:
        """Return the next request. None: the redirection is an error."""
        following = super().redirect_request(request, *given)
        if following is None or request.has_header("Authorization"):
            return None
        return None if request.type == "https" and following.type != "https" else following


def _ask(request: Request) -> bytes:
    try:
        with build_opener(_Redirections).open(request, timeout=SECONDS_MAX) as answer:
            content: bytes = answer.read(ANSWER_BYTES_MAX)
            return content
    except HTTPError as error:
        # It holds the connection open, as an answer does.
        error.close()
        raise


def _read_file(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - the world of a process
        return file.read(ANSWER_BYTES_MAX)
