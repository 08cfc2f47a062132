"""Public keys that tokens are signed with (JWKS), from a file or from the web."""

from typing import Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

_SECONDS_MAX: Final = 10
_BYTES_MAX: Final = 1 << 20


class JwksUnavailable(Exception):
    """The keys cannot be read."""


def read_jwks(url: str) -> bytes:
    """Return the keys. This blocks."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            with open(parts.path, "rb") as file:  # noqa: PTH123 - the world of a process
                return file.read(_BYTES_MAX)
        if parts.scheme not in ("http", "https"):
            raise JwksUnavailable(f"{url} is no file:, http: or https: URL")
        request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - checked above
        with urlopen(request, timeout=_SECONDS_MAX) as answer:  # noqa: S310
            content: bytes = answer.read(_BYTES_MAX)
            return content
    except (OSError, URLError, ValueError) as error:
        raise JwksUnavailable(f"{url} cannot be read: {error}") from error
