"""A satellite that tells what it was asked, and a server for it, for tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ottla.satellite.app import Api, Received, Reply, Route, make_app
from ottla.satellite.connections import ConnectionLimits
from ottla.satellite.metrics import Metrics
from ottla.satellite.server import listening, serve
from ottla.satellite.settings import HttpSettings


class EchoApi(Api):
    """Answers with the user and the body, and keeps what it has got."""

    routes = (
        Route("GET", "/things/{name}", None),  # type: ignore[arg-type]
        Route("POST", "/things/{name}", None),  # type: ignore[arg-type]
        Route("GET", "/large", None),  # type: ignore[arg-type]
    )
    body_types = ("application/json",)

    def __init__(self) -> None:
        self.received: list[Received] = []

    def answer_type(self, accept: str | None) -> str:
        """Return JSON, always."""
        del accept
        return "application/json"

    async def answer(self, route: Route, received: Received, content_type: str) -> Reply:
        """Tell what was received."""
        self.received.append(received)
        if route.path == "/large":
            return Reply(200, b"x" * 32_000_000, content_type)
        told = {
            "name": received.path["name"],
            "user": received.user,
            "body": received.data.decode(),
        }
        return Reply(200, json.dumps(told).encode(), content_type)


@asynccontextmanager
async def serving(app: Any, limits: ConnectionLimits | None = None) -> AsyncIterator[int]:
    """Serve an application on loopback. Yields the port."""
    settings = HttpSettings()
    stop = asyncio.Event()
    with listening(settings) as listener:
        task = asyncio.create_task(serve(app, listener, settings, stop, limits))
        try:
            yield listener.getsockname()[1]
        finally:
            stop.set()
            await task


def echo_app() -> Any:
    """Return the application alone."""
    return make_app(EchoApi(), Metrics())
