"""The worker as an ASGI application.

Starlette decodes paths before it looks for a route, and a connector may have a slash in its name. So routes
are compared with the path as it was sent, and parts of it are decoded afterwards.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from ottla.client.errors import ClientError
from ottla.connect.configs.secrets import Secrets
from ottla.connect.errors import RestError
from ottla.connect.serving.call import Answer, Call
from ottla.connect.serving.routes import ROUTES, Route
from ottla.connect.worker import Worker

_logger = logging.getLogger(__name__)
_BODY_BYTES_MAX: Final = 16 * 1024 * 1024
JSON: Final = "application/json"
UNAUTHORIZED: Final = b'{"error_code":401,"message":"Unauthorized"}'
_KEPT: Final = ("authorization", "content-type", "accept")
_ANYTHING: Final = ("*/*", "application/*", JSON)


def make_app(worker: Worker) -> Any:
    """Return the application of a worker."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = route
    routes = [
        StarletteRoute(path, _endpoint(worker, methods), methods=list(methods))
        for path, methods in by_path.items()
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: _http_error,
            RestError: partial(_rest_error, worker.secrets),
            ClientError: partial(_cluster_error, worker.secrets),
            Exception: _fault,
        },
    )
    app.router.redirect_slashes = False
    return _EncodedPaths(app)


class _EncodedPaths:
    """Passes requests on with their paths as they were sent."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path", scope["path"].encode()).decode("latin-1").split("?")[0]
            scope = {**scope, "path": raw.rstrip("/") or "/"}
        await self._app(scope, receive, send)


def _endpoint(worker: Worker, methods: dict[str, Route]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        _check_accepted(request.headers.get("accept"))
        data = await _read(request)
        route = methods["GET" if request.method == "HEAD" else request.method]
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        is_cluster_wide = query.get("scope", [""])[0].lower() == "cluster"
        if (route.is_led or is_cluster_wide) and not worker.is_leader:
            return await _forward(worker, request, data, query)
        path = {name: unquote(value) for name, value in request.path_params.items()}
        headers = {name.lower(): value for name, value in request.headers.items()}
        return _response(await route.handler(Call(worker, path, query, headers, data)))

    return endpoint


async def _forward(worker: Worker, request: Request, data: bytes, query: dict[str, list[str]]) -> Response:
    """Send a request to the leader. What was forwarded twice is not forwarded again."""
    leader, hops = worker.leader_url, query.get("forward", [None])[0]
    if leader is None:
        raise RestError(
            409,
            "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was "
            "underway.",
        )
    if hops == "false" or leader.rstrip("/") == worker.url:
        raise RestError(
            409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        )
    text = request.scope["query_string"].decode("latin-1")
    kept = [part for part in text.split("&") if part and not part.startswith("forward=")]
    kept.append("forward=true" if hops is None else "forward=false")
    url = f"{leader.rstrip('/')}{request.scope['path']}?{'&'.join(kept)}"
    headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
    answer = await worker.internal.send(request.method, url, data, headers)
    passed = {name: answer.headers[name] for name in ("location",) if name in answer.headers}
    return Response(
        answer.content, answer.status_code, headers=passed, media_type=answer.headers.get("content-type")
    )


def _check_accepted(accept: str | None) -> None:
    if accept and not any(part.split(";")[0].strip().lower() in _ANYTHING for part in accept.split(",")):
        raise RestError(406, "HTTP 406 Not Acceptable")


async def _read(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > _BODY_BYTES_MAX:
            raise RestError(413, f"The body is larger than {_BODY_BYTES_MAX} bytes")
    kind = request.headers.get("content-type")
    if data and kind is not None and kind.split(";")[0].strip().lower() != JSON:
        raise RestError(415, "HTTP 415 Unsupported Media Type")
    return bytes(data)


def _response(answer: Answer) -> Response:
    if not answer.has_body:
        return Response(status_code=answer.status, headers=dict(answer.headers))
    body = json.dumps(answer.body, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(body, answer.status, headers=dict(answer.headers), media_type=JSON)


def _error(status: int, message: str) -> Response:
    return _response(Answer(status, {"error_code": status, "message": message}))


async def _rest_error(secrets: Secrets, _request: Request, error: Exception) -> Response:
    assert isinstance(error, RestError), "it is registered for these"
    return _error(error.status, secrets.mask(error.message))


async def _cluster_error(secrets: Secrets, _request: Request, error: Exception) -> Response:
    return _error(500, secrets.mask(f"The cluster did not answer as expected: {error}"))


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for these"
    return _error(error.status_code, f"HTTP {error.status_code} {error.detail}")


async def _fault(_request: Request, error: Exception) -> Response:
    _logger.error("a request failed", exc_info=error)
    return _error(500, "Internal Server Error")
