"""Requests between satellites of one process: they reach applications without a network."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx


class SatelliteNetwork:
    """Applications by host and port. It also is what instances send each other requests with."""

    def __init__(self) -> None:
        self.apps: dict[str, Any] = {}
        """One that is gone does not answer."""

    async def send(
        self, method: str, url: str, data: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        """Send a request to an application. Returns the status, the body and the headers of the answer."""
        parts = urlsplit(url)
        app = self.apps.get(parts.netloc)
        if app is None:
            raise httpx.ConnectError("nobody listens there")
        scope = {
            "type": "http",
            "method": method,
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [
                (b"content-length", str(len(data)).encode()),
                *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            ],
            "http_version": "1.1",
            "scheme": parts.scheme,
            "server": None,
            "client": None,
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await app(scope, receive, send)
        named = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]), named

    @asynccontextmanager
    async def stream(self, method: str, url: str, **parts: Any) -> AsyncIterator[httpx.Response]:
        """Send a request whose answer is read in parts."""
        yield await self.request(method, url, **parts)

    async def request(
        self, method: str, url: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a request, as the client of an instance does."""
        status, body, named = await self.send(method, url, content, headers or {})
        return httpx.Response(status, content=body, headers=named)

    async def aclose(self) -> None:
        """Nothing is open."""
