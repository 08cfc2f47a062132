"""Answers to requests that get no further than the door."""

import json
import math
from typing import Any

from ottla.satellite.origins import find_refusal


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


class OriginDoor:
    """Refuses what web pages of others ask for."""

    def __init__(self, app: Any, names: frozenset[str], refusals: Refusals) -> None:
        self._app = app
        self._names = names
        self._refusals = refusals

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            refusal = find_refusal(scope["method"], headers, self._names)
            if refusal is not None:
                await self._refusals.refuse(send, 403, refusal)
                return
        await self._app(scope, receive, send)
