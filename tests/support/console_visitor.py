"""Visits pages of a console that runs in the process of the test, without a socket and without a browser."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from ottla.console.pages.routes import ROUTES
from ottla.console.serving.app import Console, make_app
from ottla.console.settings import ClusterSettings, ConsoleSettings

ORIGIN = "http://127.0.0.1:8088"


class ConsoleVisitor:
    """One console, and one browser that keeps its cookies."""

    def __init__(self, settings: ConsoleSettings, **console: Any) -> None:
        self.console = Console(settings, **console)
        self.app = make_app(self.console, ROUTES)
        self._runner = asyncio.Runner()
        self.client = self.another()

    @classmethod
    def of(cls, bootstrap: str, registry_url: str | None = None, **properties: str) -> Self:
        """Make a console of one cluster."""
        given = {"bootstrap.servers": bootstrap, **properties}
        return cls(ConsoleSettings((ClusterSettings.of("c", given, registry_url),)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._runner.run(self.client.aclose())
        self._runner.run(self.console.close())
        self._runner.close()

    def another(self) -> httpx.AsyncClient:
        """Return another browser, without cookies."""
        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=None)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Open an address below that of the cluster, or of the console if it begins with two slashes."""
        answer: httpx.Response = self.run(self.client.get(_full(path), headers=headers))
        return answer

    def page(self, path: str) -> str:
        """Return a page that must be there."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> httpx.Response:
        """Send a form, with the token of a page of ours."""
        given = {"token": self.token(), **form}
        answer: httpx.Response = self.run(self.client.post(_full(path), data=given, headers=headers))
        return answer

    def token(self) -> str:
        """Return the token of this browser's forms."""
        if self.console.cookie not in self.client.cookies:
            self.get("/topics")
        return self.console.sessions.token(self.client.cookies[self.console.cookie])

    def run(self, work: Any) -> Any:
        """Run something on the loop of the console."""
        return self._runner.run(work)


def _full(path: str) -> str:
    return path[1:] if path.startswith("//") else f"/c/c{path}"
