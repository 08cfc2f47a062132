"""A satellite as an ASGI application: routes, bodies, answers and errors.

Starlette decodes paths before it looks for a route, and a name in a path may have a slash in it. So routes
are compared with the path as it was sent, and parts of it are decoded afterwards.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from ottla.satellite.bodies import Bodies
from ottla.satellite.errors import HttpError
from ottla.satellite.metrics import CONTENT_TYPE as METRICS_TYPE
from ottla.satellite.metrics import PATH as METRICS
from ottla.satellite.metrics import SEEN, Metrics

_logger = logging.getLogger(__name__)
Query = list[tuple[str, str]]
# nginx's number: nobody reads the answer.
_CLIENT_GONE: Final = 499


class Route(NamedTuple):
    """A method and a path, what it does, and the query parameters that it knows."""

    method: str
    path: str
    handler: Callable[[Any], Any]
    parameters: tuple[str, ...] = ()
    is_led: bool = False
    """Whether the leader of the instances has to answer, whatever the handler finds."""


@dataclass(frozen=True)
class Received:
    """A request that was read."""

    method: str
    target: str
    """The path and the query as they were sent."""
    path: Mapping[str, str]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    data: bytes
    user: str | None = None
    is_forwarded: bool = False
    """Whether another instance has signed it."""
    address: str = ""
    """Where the connection comes from."""


@dataclass(frozen=True)
class Reply:
    """An answer in bytes. Without a body: nothing but the status."""

    status: int = 200
    body: bytes | None = None
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Api(ABC):
    """What a satellite says of itself. The application asks it."""

    routes: Sequence[Route]
    body_types: Collection[str]
    """The content types of bodies."""

    @abstractmethod
    def answer_type(self, accept: str | None) -> str:
        """Return the content type that a client takes. Raises HttpError."""

    @abstractmethod
    async def answer(self, route: Route, received: Received, content_type: str) -> Reply:
        """Do what a request asks for. Raises HttpError."""

    def shown(self, message: str) -> str:
        """Return a text without secrets."""
        return message

    def error_of(self, error: Exception) -> HttpError | None:
        """Return the answer to an error that is none of HTTP. None: it is a fault of this program."""
        del error
        return None

    def rewritten(self, path: str, query: Query) -> tuple[str, Query]:
        """Return the path and the query that are meant by others."""
        return path, query


def make_app(api: Api, metrics: Metrics) -> Any:
    """Return the application."""
    # One endpoint for each path, so that a wrong method differs from a wrong path.
    by_path: dict[str, dict[str, Route]] = {}
    for route in api.routes:
        by_path.setdefault(route.path, {})[route.method] = route
    bodies = Bodies(api.body_types)
    routes = [
        StarletteRoute(path, _endpoint(api, bodies, methods), methods=list(methods))
        for path, methods in by_path.items()
    ]
    routes.append(StarletteRoute(METRICS, _metrics_endpoint(metrics), methods=["GET"]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _fault})
    app.router.redirect_slashes = False
    return _EncodedPaths(app, api)


class _EncodedPaths:
    """Passes requests on with their paths as they were sent, but for what the API rewrites."""

    def __init__(self, app: Any, api: Api) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path", scope["path"].encode()).decode("latin-1").split("?")[0]
            sent = raw.rstrip("/") or "/"
            query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            path, meant = self._api.rewritten(sent, query)
            scope = {**scope, "path": path}
            if meant != query:
                scope["query_string"] = urlencode(meant).encode()
        await self._app(scope, receive, send)


def _metrics_endpoint(metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_request: Request) -> Response:
        return Response(metrics.text(), media_type=METRICS_TYPE)

    return endpoint


def _endpoint(
    api: Api, bodies: Bodies, methods: Mapping[str, Route]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            seen = request.scope.get(SEEN)
            if seen is not None:
                seen.route = next(iter(methods.values())).path
            content_type = api.answer_type(request.headers.get("accept"))
            with bodies.held() as held:
                data = await bodies.read(request, held)
                route = methods["GET" if request.method == "HEAD" else request.method]
                return _response(await api.answer(route, read_request(request, data), content_type))
        except HttpError as error:
            return _error(api, error)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_GONE)
        except Exception as error:
            known = api.error_of(error)
            if known is None:
                raise
            return _error(api, known)

    return endpoint


def read_request(request: Request, data: bytes) -> Received:
    """Return a request without its server, with its body."""
    query = request.scope["query_string"].decode("latin-1")
    return Received(
        request.method,
        request.scope["path"] + (f"?{query}" if query else ""),
        {name: unquote(value) for name, value in request.path_params.items()},
        parse_qs(query, keep_blank_values=True),
        {name.lower(): value for name, value in request.headers.items()},
        data,
        request.scope.get("user"),
        "forwarded" in request.scope,
        request.client.host if request.client else "",
    )


def encode_json(value: Any) -> bytes:
    """Return an answer as JSON.

    Clients can send half a character, as an escape. UTF-8 has no bytes for it, and it is written as it came.
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")


def _response(reply: Reply) -> Response:
    headers = dict(reply.headers)
    if reply.body is None:
        return Response(status_code=reply.status, headers=headers)
    return Response(reply.body, reply.status, headers=headers, media_type=reply.content_type or None)


def _error(api: Api, error: HttpError) -> Response:
    body = encode_json({"error_code": error.code, "message": api.shown(error.message)})
    return Response(body, error.status, media_type=api.answer_type(None))


async def _http_error(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, HTTPException), "it is registered for these"
    message = f"HTTP {error.status_code} {error.detail}"
    body = encode_json({"error_code": error.status_code, "message": message})
    return Response(body, error.status_code, media_type="application/json")


async def _fault(_request: Request, error: Exception) -> Response:
    _logger.error("a request failed", exc_info=error)
    body = encode_json({"error_code": 500, "message": "Internal Server Error"})
    return Response(body, 500, media_type="application/json")
