"""A registry as a process: `ottla registry`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ottla.client.errors import ClientError
from ottla.client.properties import InvalidProperty, Properties
from ottla.http.login import LoginMiddleware, Users
from ottla.http.server import listening, serve
from ottla.http.settings import HttpSettings, UnusableSettings
from ottla.registry.leading.protocol import Identity
from ottla.registry.service import Registry, RegistrySettings
from ottla.registry.serving.app import UNAUTHORIZED, make_app
from ottla.registry.serving.bodies import CONTENT_TYPES
from ottla.registry.serving.forwarding import Forwarder
from ottla.runtime.signals import StopSignals


class RegistryFailure(Exception):
    """A registry that cannot start."""


@dataclass(frozen=True)
class RegistryOptions:
    """All that a registry needs to know."""

    properties: Properties
    http: HttpSettings = field(default_factory=HttpSettings)
    registry: RegistrySettings = field(default_factory=RegistrySettings)
    advertised_host: str | None = None
    """How the other instances reach this one, if not by the address it listens on."""


def run_registry(options: RegistryOptions, ready: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT. `ready` gets the URL. Raises RegistryFailure."""
    try:
        options.http.check()
        asyncio.run(_run(options, ready))
    except (UnusableSettings, InvalidProperty, ClientError) as error:
        raise RegistryFailure(str(error)) from error


async def _run(options: RegistryOptions, ready: Callable[[str], None]) -> None:
    http = options.http
    users = None if http.users_file is None else Users.read(http.users_file)
    stop = asyncio.Event()
    StopSignals(asyncio.get_running_loop(), stop.set).install()
    with listening(http) as listener:
        port: int = listener.getsockname()[1]
        identity = Identity(
            options.advertised_host or http.host,
            port,
            http.scheme,
            is_eligible=options.registry.is_eligible,
        )
        registry = Registry(options.properties, options.registry, identity)
        forwarder = Forwarder(registry, http.tls_to_others())
        starting = asyncio.create_task(registry.start())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        try:
            if starting.done():
                starting.result()
                app: Any = make_app(registry, forwarder)
                if users is not None:
                    app = LoginMiddleware(app, users, UNAUTHORIZED, CONTENT_TYPES[0])
                ready(http.url(port))
                await serve(app, listener, http, stop)
        finally:
            stopping.cancel()
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await forwarder.close()
            await registry.stop()
