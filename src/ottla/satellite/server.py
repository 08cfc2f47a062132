"""Runs an ASGI application until an event says that the process stops.

    with listening(settings) as listener:
        await serve(app, listener, settings, stop)

The port is bound before the application is made, because an application may have to tell others its address.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from ottla.satellite.connections import BoundedConnection, ConnectionLimits
from ottla.satellite.listener import Listener
from ottla.satellite.settings import HttpSettings, UnusableSettings


@contextmanager
def listening(settings: HttpSettings) -> Iterator[Listener]:
    """Bind the port. Raises UnusableSettings if it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        bound = socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise UnusableSettings(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
        ) from error
    listener = Listener(bound.family, bound.type, bound.proto, bound.detach())
    # Connections inherit it. asyncio sets it only for sockets that it has made itself, and without it the
    # body of an answer waits 40 ms for the client to acknowledge the head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        yield listener
    finally:
        listener.close()


class _Server(uvicorn.Server):
    """A server that leaves signals to the process, and has bounds."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits, listener: Listener) -> None:
        super().__init__(config)
        self._limits = limits
        self._listener = listener

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Listen, as uvicorn does, but with bounds on handshakes."""
        del sockets
        await self.lifespan.startup()
        loop, tls = asyncio.get_running_loop(), self.config.ssl

        def connection() -> BoundedConnection:
            return BoundedConnection(
                self._limits,
                self._listener.known,
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
                _loop=loop,
            )

        self._listener.waiting_max = self._limits.handshakes
        handshake_s = self._limits.handshake_s if tls is not None else None
        self.servers = [
            await loop.create_server(
                connection,
                sock=self._listener,
                ssl=tls,
                backlog=self.config.backlog,
                ssl_handshake_timeout=handshake_s,
                ssl_shutdown_timeout=handshake_s,
            )
        ]
        self.started = True


async def serve(
    app: Any,
    listener: Listener,
    settings: HttpSettings,
    stop: asyncio.Event,
    limits: ConnectionLimits | None = None,
) -> None:
    """Serve until `stop` is set, and then finish what was begun."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        # Guesses are counted by address. Clients on this machine could name any.
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=65,
    )
    config.load()
    config.ssl = settings.tls()
    server = _Server(config, limits or ConnectionLimits(), listener)

    async def watch() -> None:
        await stop.wait()
        server.should_exit = True

    watching = asyncio.create_task(watch())
    try:
        await server.serve(sockets=[listener])
    finally:
        watching.cancel()
