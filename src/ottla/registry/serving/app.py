"""The registry as an ASGI application.

Starlette decodes paths before it looks for a route, and a subject may have a slash in it. So routes are
compared with the path as it was sent, and parts of it are decoded afterwards.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from ottla.registry.errors import RegistryError
from ottla.registry.service import Registry
from ottla.registry.serving import bodies
from ottla.registry.serving.call import Call, Change, NoContent, Text
from ottla.registry.serving.forwarding import Forwarder
from ottla.registry.serving.paths import without_context
from ottla.registry.serving.routes import ROUTES, Route

_logger = logging.getLogger(__name__)
_BODY_BYTES_MAX: Final = 16 * 1024 * 1024
UNAUTHORIZED: Final = bodies.encode({"error_code": 401, "message": "Unauthorized"})


def make_app(registry: Registry, forwarder: Forwarder) -> Any:
    """Return the application of an instance."""
    # One endpoint for each path, so that a wrong method differs from a wrong path.
    by_path: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = route
    routes = [
        StarletteRoute(path, _endpoint(registry, forwarder, methods), methods=list(methods))
        for path, methods in by_path.items()
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _http_error, RegistryError: _registry_error, Exception: _fault},
    )
    app.router.redirect_slashes = False
    return _EncodedPaths(app)


class _EncodedPaths:
    """Passes requests on with their paths as they were sent, without the context that one may begin with."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path", scope["path"].encode()).decode("latin-1").split("?")[0]
            path = raw.rstrip("/") or "/"
            query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            path, query = without_context(path, query)
            scope = {**scope, "path": path, "query_string": urlencode(query).encode()}
        await self._app(scope, receive, send)


def _endpoint(
    registry: Registry, forwarder: Forwarder, methods: dict[str, Route]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        content_type = bodies.answer_type(request.headers.get("accept"))
        data = await _read(request)
        path = {name: unquote(value) for name, value in request.path_params.items()}
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        method = "GET" if request.method == "HEAD" else request.method
        answer = methods[method].handler(Call(registry, path, query, data))
        if isinstance(answer, Change):
            if not registry.is_leader:
                forwarded = await forwarder.forward(request, data)
                if forwarded is not None:
                    return forwarded
            answer = answer.show(await registry.change(answer.decide))
        return _response(answer, content_type)

    return endpoint


async def _read(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > _BODY_BYTES_MAX:
            raise RegistryError(413, f"The body is larger than {_BODY_BYTES_MAX} bytes")
    if data:
        bodies.check_content_type(request.headers.get("content-type"))
    return bytes(data)


def _response(answer: Any, content_type: str, status: int = 200) -> Response:
    if isinstance(answer, NoContent):
        return Response(status_code=204)
    data = answer.encode() if isinstance(answer, Text) else bodies.encode(answer)
    return Response(data, status, media_type=content_type)


def _error(code: int, message: str, status: int) -> Response:
    return _response({"error_code": code, "message": message}, bodies.CONTENT_TYPES[0], status)


async def _registry_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError), "it is registered for these"
    return _error(error.code, error.message, error.status)


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for these"
    return _error(error.status_code, f"HTTP {error.status_code} {error.detail}", error.status_code)


async def _fault(_request: Request, error: Exception) -> Response:
    _logger.error("a request failed", exc_info=error)
    return _error(500, "Internal Server Error", 500)
