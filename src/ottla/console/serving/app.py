"""The console as an ASGI application: from a request to a page.

Paths are matched as they were sent and decoded afterwards, because names of groups may have a slash in them.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route as StarletteRoute

from ottla.client.errors import ClientError
from ottla.console.serving import login
from ottla.console.serving.call import Call, Page, cluster_url, json_answer
from ottla.console.serving.failures import failure_of
from ottla.console.serving.files import PREFIX, by_address
from ottla.console.serving.headers import HeaderDoor
from ottla.console.serving.rendering import render, shell_word
from ottla.console.serving.satellites import Satellites
from ottla.console.serving.sessions import Sessions
from ottla.console.serving.visits import Visits
from ottla.console.settings import ClusterSettings, ConsoleSettings
from ottla.satellite.bodies import Bodies
from ottla.satellite.errors import HttpError
from ottla.satellite.guesses import Guesses
from ottla.satellite.metrics import SEEN, Metrics, MetricsDoor
from ottla.satellite.refusals import OriginDoor, Refusals

_logger = logging.getLogger(__name__)
_FORM: Final = "application/x-www-form-urlencoded"
_BODY_TYPES: Final = (_FORM, "text/plain", "application/json", "application/x-ndjson", "text/csv")
_CLIENT_GONE: Final = 499
_FIELDS_MAX: Final = 2_000
_PROOF_FIELD: Final = "token"
_PROOF_HEADER: Final = "x-console-token"
_IMMUTABLE: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class PageRoute:
    """A method, a path below that of a cluster, and what it shows."""

    method: str
    path: str
    page: Page
    is_api: bool = False

    @property
    def full_path(self) -> str:
        """The path with the cluster."""
        return ("/api/c/{cluster}" if self.is_api else "/c/{cluster}") + self.path


class Console:
    """What runs behind the pages."""

    def __init__(
        self,
        settings: ConsoleSettings,
        visits: Visits | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.sessions = Sessions(settings.idle_s, settings.session_s, now_s)
        self.visits = visits or Visits(settings)
        self.guesses = Guesses()
        self.satellites = Satellites()
        self.now_s = now_s
        self.port = 0
        self.streams = 0
        self.is_stopping = False

    async def close(self) -> None:
        """Close all connections."""
        await self.visits.close()
        await self.satellites.close()

    async def sweep(self) -> None:
        """Close the visits of sessions that are over."""
        for session_id in self.sessions.sweep():
            await self.visits.end(session_id)

    @property
    def cookie(self) -> str:
        """The name of the cookie. Browsers do not tell the ports of a host apart, so it names ours."""
        return f"ottla-console-{self.port}"

    def shared_values(
        self, session_id: str, cluster: ClusterSettings | None, user: str | None
    ) -> dict[str, Any]:
        """Return what all templates get."""
        return {
            "clusters": [one.name for one in self.settings.clusters],
            "cluster": None if cluster is None else cluster.name,
            "cluster_settings": cluster,
            "user": user,
            "token": self.sessions.token(session_id),
            "cluster_url": cluster_url,
            "places": PLACES,
            "cli": partial(command_text, cluster),
        }


PLACES: Final = (
    ("overview", "Overview", ()),
    ("topics", "Topics", ("topics",)),
    ("groups", "Groups", ("groups",)),
    ("schemas", "Schemas", ("schemas",)),
    ("connectors", "Connectors", ("connectors",)),
    ("transactions", "Transactions", ("transactions",)),
    ("cluster", "Cluster", ("nodes",)),
    ("access", "Access", ("access",)),
    ("journal", "Journal", ("journal",)),
)
"""What the menu has: a name, what it is called, and its path."""


def command_text(cluster: ClusterSettings | None, *words: str) -> str:
    """Return a command that does, in a shell, what a page does."""
    where = [] if cluster is None else cluster.command_words
    return " ".join(map(shell_word, ("ottla", *words, *where)))


def make_app(console: Console, routes: tuple[PageRoute, ...]) -> Any:
    """Return the application with all that a request has to pass before."""
    bodies = Bodies(_BODY_TYPES)
    by_path: dict[str, dict[str, PageRoute]] = {}
    for route in routes:
        by_path.setdefault(route.full_path, {})[route.method] = route
    listed = [
        StarletteRoute(path, _cluster_endpoint(console, bodies, methods), methods=list(methods))
        for path, methods in by_path.items()
    ]
    app = Starlette(
        routes=[
            StarletteRoute("/", _home(console), methods=["GET"]),
            StarletteRoute("/health", _health, methods=["GET"]),
            StarletteRoute(PREFIX + "{name}", _static, methods=["GET"]),
            StarletteRoute("/login/{cluster}", _login_endpoint(console, bodies), methods=["GET", "POST"]),
            StarletteRoute("/logout", _logout_endpoint(console, bodies), methods=["POST"]),
            *listed,
        ],
        exception_handlers={HTTPException: _no_page(console), Exception: _fault},
    )
    app.router.redirect_slashes = False
    names = console.settings.http.names
    refusals = Refusals("application/json")
    return MetricsDoor(OriginDoor(HeaderDoor(_Undecoded(app)), names, refusals), Metrics())


class _Undecoded:
    """Passes requests on with their paths as they were sent."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path") or scope["path"].encode()
            scope = {**scope, "path": raw.decode("latin-1").partition("?")[0]}
        await self._app(scope, receive, send)


def _cluster_endpoint(
    console: Console, bodies: Bodies, methods: Mapping[str, PageRoute]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        route = methods["GET" if request.method == "HEAD" else request.method]
        seen = request.scope.get(SEEN)
        if seen is not None:
            seen.route = route.full_path
        session_id, is_new = session_of(console, request)
        path = {name: unquote(value) for name, value in request.path_params.items()}
        cluster = console.settings.find(path["cluster"])
        try:
            cluster = _known(cluster, path["cluster"])
            with bodies.held() as held:
                data = await bodies.read(request, held)
                form = _form(request, data)
                if request.method not in ("GET", "HEAD"):
                    check_token(console, request, session_id, form)
                session = console.sessions.find(session_id)
                given = None if session is None else session.logins.get(cluster.name)
                if cluster.needs_login and given is None:
                    return _to_login(request, cluster, route.is_api)
                visit = await console.visits.get(cluster, session_id, given)
                call = Call(
                    console,
                    request.method,
                    path,
                    dict(request.query_params),
                    form,
                    session_id,
                    cluster,
                    visit,
                    request.client.host if request.client else "",
                    request.headers.get("hx-request") == "true",
                )
                answer: Response = await route.page(call)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_GONE)
        except (HttpError, ClientError) as error:
            answer = _failed(console, request, session_id, cluster, error, route.is_api)
        if is_new:
            set_cookie(console, answer, session_id)
        return answer

    return endpoint


def _known(cluster: ClusterSettings | None, name: str) -> ClusterSettings:
    if cluster is None:
        raise HttpError(404, f"this console shows no cluster {name!r}")
    return cluster


def _with_login(cluster: ClusterSettings | None) -> ClusterSettings:
    if cluster is None or not cluster.needs_login:
        raise HttpError(404, "there is nothing to log in to here")
    return cluster


def _form(request: Request, data: bytes) -> dict[str, list[str]]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _FORM:
        try:
            return parse_qs(data.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
        except ValueError as error:
            raise HttpError(400, f"the form cannot be read: {error}") from error
    return {"body": [data.decode(errors="surrogateescape")]} if data else {}


def check_token(console: Console, request: Request, session_id: str, form: Mapping[str, list[str]]) -> None:
    """Refuse what did not come from a page of ours. Raises HttpError."""
    given = request.headers.get(_PROOF_HEADER) or (form.get(_PROOF_FIELD) or [""])[0]
    if not console.sessions.is_token(session_id, given):
        raise HttpError(403, "this form is not from a page of this console, or it is too old: load it again")


def session_of(console: Console, request: Request) -> tuple[str, bool]:
    """Return the number of a visitor, and whether it is a new one."""
    given = request.cookies.get(console.cookie, "")
    if Sessions.looks_like_id(given):
        return given, False
    return Sessions.new_id(), True


def set_cookie(console: Console, answer: Response, session_id: str) -> None:
    """Have the browser keep the number of a visitor."""
    answer.set_cookie(
        console.cookie,
        session_id,
        httponly=True,
        samesite="strict",
        secure=console.settings.http.certificate is not None,
        path="/",
    )


def _to_login(request: Request, cluster: ClusterSettings, is_api: bool) -> Response:
    if is_api:
        return json_answer({"error": f"log in at /login/{cluster.name} first"}, 401)
    target = login.login_url(cluster.name, f"{request.scope['path']}?{request.url.query}".rstrip("?"))
    if request.headers.get("hx-request") == "true":
        # A part of a page cannot become a login.
        return Response(status_code=204, headers={"HX-Redirect": target})
    return RedirectResponse(target, 303)


def _failed(
    console: Console,
    request: Request,
    session_id: str,
    cluster: ClusterSettings | None,
    error: HttpError | ClientError,
    is_api: bool,
) -> Response:
    session = console.sessions.find(session_id)
    given = session.logins.get(cluster.name) if session is not None and cluster is not None else None
    failure = failure_of(error, None if given is None else given.user)
    if is_api:
        return json_answer({"error": failure.sentence, "next": failure.next_step}, failure.status)
    values = console.shared_values(session_id, cluster, None if given is None else given.user)
    is_part = request.headers.get("hx-request") == "true"
    template = "part_failure.html" if is_part else "failure.html"
    text = render(template, {**values, "failure": failure})
    # htmx shows only answers that went well where a part of a page belongs.
    return HTMLResponse(text, 200 if is_part else failure.status)


def _home(console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def home(request: Request) -> Response:
        session_id, is_new = session_of(console, request)
        clusters = console.settings.clusters
        if len(clusters) == 1:
            return RedirectResponse(cluster_url(clusters[0].name), 303)
        values = console.shared_values(session_id, None, None)
        answer = HTMLResponse(render("clusters.html", {**values, "listed": clusters}))
        if is_new:
            set_cookie(console, answer, session_id)
        return answer

    return home


async def _health(_request: Request) -> Response:
    return json_answer({"status": "UP"})


async def _static(request: Request) -> Response:
    file = by_address().get(request.scope["path"])
    if file is None:
        return Response("There is no such file.\n", 404, media_type="text/plain")
    return Response(file.content, media_type=file.content_type, headers={"cache-control": _IMMUTABLE})


def _login_endpoint(console: Console, bodies: Bodies) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        session_id, is_new = session_of(console, request)
        cluster = console.settings.find(unquote(request.path_params["cluster"]))
        try:
            cluster = _with_login(cluster)
            with bodies.held() as held:
                form = _form(request, await bodies.read(request, held))
            if request.method == "POST":
                check_token(console, request, session_id, form)
                address = request.client.host if request.client else ""
                done = await login.log_in(console, cluster, session_id, form, address)
                if isinstance(done, login.LoggedIn):
                    answer: Response = RedirectResponse(done.target, 303)
                    set_cookie(console, answer, done.session_id)
                    return answer
                answer = login.form_page(console, cluster, session_id, done)
            else:
                target = request.query_params.get("next", "")
                answer = login.form_page(console, cluster, session_id, login.Refused(target=target))
        except (HttpError, ClientError) as error:
            answer = _failed(console, request, session_id, None, error, False)
        if is_new:
            set_cookie(console, answer, session_id)
        return answer

    return endpoint


def _logout_endpoint(console: Console, bodies: Bodies) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        session_id, _ = session_of(console, request)
        try:
            with bodies.held() as held:
                form = _form(request, await bodies.read(request, held))
            check_token(console, request, session_id, form)
        except HttpError as error:
            return _failed(console, request, session_id, None, error, False)
        console.sessions.log_out(session_id)
        await console.visits.end(session_id)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(console.cookie, path="/")
        return answer

    return endpoint


def _no_page(console: Console) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def no_page(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), "it is registered for these"
        session_id, _ = session_of(console, request)
        path = request.scope["path"]
        sentence = f"there is no page {path}" if error.status_code == 404 else error.detail
        missing = HttpError(error.status_code, sentence)
        return _failed(console, request, session_id, None, missing, path.startswith("/api/"))

    return no_page


async def _fault(_request: Request, error: Exception) -> Response:
    _logger.error("a request failed", exc_info=error)
    return Response(
        "Internal Server Error: the log of the console says more.\n", 500, media_type="text/plain"
    )
