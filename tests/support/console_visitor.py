"""Visits pages of a console that runs in the process of the test, without a socket and without a browser."""

import asyncio
import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from ottla.console.pages.routes import ROUTES
from ottla.console.serving.app import Console, make_app
from ottla.console.serving.streams import Event
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
        """Return a page that must be there, whole: a slow one is asked for again, as a browser does."""
        while True:
            answer = self.get(path)
            assert answer.status_code == 200, answer.text
            if 'hx-trigger="load delay' not in answer.text:
                return answer.text
            again = "figures=1"
            path = path if again in path else f"{path}{'&' if '?' in path else '?'}{again}"

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> httpx.Response:
        """Send a form, with the token of a page of ours."""
        given = {"token": self.token(), **form}
        answer: httpx.Response = self.run(self.client.post(_full(path), data=given, headers=headers))
        return answer

    def events(self, path: str, is_enough: Callable[[list[Event]], bool]) -> list[Event]:
        """Follow a stream until that is enough, and leave."""
        self.token()
        return self.run(self._follow(path, is_enough))  # type: ignore[no-any-return]

    async def _follow(self, path: str, is_enough: Callable[[list[Event]], bool]) -> list[Event]:
        url = httpx.URL(ORIGIN + _full(path))
        cookie = f"{self.console.cookie}={self.client.cookies[self.console.cookie]}"
        scope = {
            "type": "http",
            "method": "GET",
            "path": url.path,
            "raw_path": url.raw_path.partition(b"?")[0],
            "query_string": url.query,
            "headers": [(b"host", b"127.0.0.1:8088"), (b"cookie", cookie.encode())],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 8088),
            "client": ("127.0.0.1", 50_000),
        }
        found: list[Event] = []
        enough = asyncio.Event()
        data = bytearray()
        asked: list[bool] = []

        async def receive() -> dict[str, Any]:
            if not asked:
                asked.append(True)
                return {"type": "http.request", "body": b"", "more_body": False}
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            data.extend(message.get("body", b""))
            while b"\n\n" in data:
                block, _, rest = bytes(data).partition(b"\n\n")
                data[:] = rest or b"\n"
                fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if ": " in line)
                if "event" in fields:
                    found.append(Event(fields["event"], json.loads(fields["data"]), fields.get("id", "")))
            if is_enough(found) or (message["type"] == "http.response.body" and not message.get("more_body")):
                enough.set()

        working = asyncio.create_task(self.app(scope, receive, send))
        waiting = asyncio.create_task(enough.wait())
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return found

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
