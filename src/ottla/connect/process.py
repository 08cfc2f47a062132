"""A worker as a process: `ottla connect`."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.client.errors import ClientError
from ottla.client.properties import InvalidProperty
from ottla.connect.configs.providers import read_providers
from ottla.connect.configs.secrets import Secrets, hide_in_logs
from ottla.connect.connectors.spark.shared_session import close_shared_session
from ottla.connect.errors import ConnectError
from ottla.connect.serving.app import JSON, UNAUTHORIZED, make_app
from ottla.connect.settings import read_settings
from ottla.connect.worker import Worker
from ottla.http.login import LoginMiddleware, Users
from ottla.http.server import listening, serve
from ottla.http.settings import HttpSettings, UnusableSettings
from ottla.runtime.signals import StopSignals


class WorkerFailure(Exception):
    """A worker that cannot start."""


@dataclass(frozen=True)
class WorkerOptions:
    """All that a worker needs to know."""

    properties: Mapping[str, str]
    """By the names of Kafka's worker properties, those of its clients included."""
    http: HttpSettings = field(default_factory=HttpSettings)
    advertised_host: str | None = None
    """How the other workers reach this one, if not by the address it listens on."""


def run_worker(options: WorkerOptions, ready: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT. `ready` gets the URL. Raises WorkerFailure."""
    try:
        options.http.check()
        asyncio.run(_run(options, ready))
    except (UnusableSettings, InvalidProperty, ConnectError, ClientError) as error:
        raise WorkerFailure(str(error)) from error


async def _run(options: WorkerOptions, ready: Callable[[str], None]) -> None:
    http = options.http
    users = None if http.users_file is None else Users.read(http.users_file)
    secrets = Secrets()
    hide_in_logs(secrets)
    providers = read_providers(options.properties, secrets)
    settings, properties = read_settings(providers.resolve(options.properties))
    stop = asyncio.Event()
    StopSignals(asyncio.get_running_loop(), stop.set).install()
    with listening(http) as listener:
        port: int = listener.getsockname()[1]
        host = options.advertised_host or http.host
        url = HttpSettings(host, certificate=http.certificate).url(port)
        worker = Worker(properties, settings, url, providers, secrets)
        starting = asyncio.create_task(worker.start())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        try:
            if starting.done():
                starting.result()
                app: Any = make_app(worker)
                if users is not None:
                    app = LoginMiddleware(app, users, UNAUTHORIZED, JSON)
                ready(http.url(port))
                await serve(app, listener, http, stop)
        finally:
            stopping.cancel()
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await worker.stop()
            await asyncio.to_thread(close_shared_session)
