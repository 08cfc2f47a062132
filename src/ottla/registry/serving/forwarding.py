"""Sends changes to the instance that writes."""

import ssl
from typing import Final

import httpx
from starlette.requests import Request
from starlette.responses import Response

from ottla.registry.errors import forwarding_failed, no_leader
from ottla.registry.service import Registry

FORWARDED: Final = "x-forward"
_KEPT: Final = ("authorization", "content-type", "accept")
# Registering again what is registered changes nothing, and so does setting the same again.
_REPEATABLE: Final = ("POST", "PUT")


class Forwarder:
    """Forwards requests. What was forwarded once is not forwarded again."""

    def __init__(self, registry: Registry, tls: ssl.SSLContext | None) -> None:
        self._registry = registry
        # Without TLS here there is none at the others: they are started alike.
        self._client = httpx.AsyncClient(
            timeout=registry.settings.timeout_s, trust_env=False, verify=False if tls is None else tls
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def forward(self, request: Request, data: bytes) -> Response | None:
        """Return what the writer answers. None: this instance has become the writer."""
        failed = None
        while True:
            leader = await self._registry.wait_for_leader(failed)
            if leader.url == self._registry.identity.url:
                return None
            if request.headers.get(FORWARDED, "").lower() == "true":
                raise no_leader()
            raw = request.scope["path"]
            query = request.scope["query_string"].decode("latin-1")
            url = f"{leader.url}{raw}" + (f"?{query}" if query else "")
            headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
            try:
                answer = await self._client.request(
                    request.method, url, content=data, headers={**headers, FORWARDED: "true"}
                )
            except httpx.ConnectError:
                # It was not sent, so it can be sent to the next writer.
                failed = leader
                continue
            except httpx.HTTPError as error:
                if request.method in _REPEATABLE:
                    failed = leader
                    continue
                raise forwarding_failed(
                    f"Error while forwarding the request to the leader: {error!r}"
                ) from error
            return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))
