"""Answers to requests that get no further than the door."""

import json
import math
from collections.abc import Sequence
from typing import Any, Final

from ottla.satellite.origins import find_refusal

_ONCE: Final = (
    b"host",
    b"origin",
    b"sec-fetch-site",
    b"content-type",
    b"content-length",
    b"transfer-encoding",
    b"authorization",
)


class Refusals:
    """Makes answers of one content type."""

    def __init__(self, content_type: str) -> None:
        self._content_type = content_type.encode()

    async def unauthorized(self, _scope: Any, send: Any) -> None:
        """Ask for a name and a password."""
        await self.refuse(send, 401, "Unauthorized", [(b"www-authenticate", b'Basic realm="ottla"')])

    async def slow_down(self, send: Any, wait_s: float) -> None:
        """Refuse to look at another password now."""
        seconds = str(math.ceil(wait_s))
        message = f"Too many wrong passwords: try again in {seconds} s"
        await self.refuse(send, 429, message, [(b"retry-after", seconds.encode())])

    async def refuse(
        self, send: Any, status: int, message: str, headers: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        """Answer with an error."""
        body = json.dumps({"error_code": status, "message": message}, separators=(",", ":")).encode()
        named = [
            (b"content-type", self._content_type),
            (b"content-length", str(len(body)).encode()),
            *(headers or []),
        ]
        await send({"type": "http.response.start", "status": status, "headers": named})
        await send({"type": "http.response.body", "body": body})


def find_ambiguity(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return why a request can be read in two ways. None: it cannot.

    A proxy in front may read it in the other way. So its next request could begin within the body of this
    one, or it may have looked at another host.
    """
    names = [name for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            return f"The header {name.decode()} is there more than once"
    if b"content-length" in names and b"transfer-encoding" in names:
        return "There are both, Content-Length and Transfer-Encoding"
    return None


class OriginDoor:
    """Refuses what web pages of others ask for, and what can be read in two ways."""

    def __init__(self, app: Any, names: frozenset[str], refusals: Refusals) -> None:
        self._app = app
        self._names = names
        self._refusals = refusals

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            ambiguity = find_ambiguity(scope["headers"])
            if ambiguity is not None:
                await self._refusals.refuse(send, 400, ambiguity, [(b"connection", b"close")])
                return
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            refusal = find_refusal(scope["method"], headers, self._names)
            if refusal is not None:
                await self._refusals.refuse(send, 403, refusal)
                return
        await self._app(scope, receive, send)
