"""The console as a process: it listens, serves, and stops on SIGTERM or SIGINT."""

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.client.errors import ClientError
from ottla.client.properties import InvalidProperty
from ottla.console.pages.routes import ROUTES
from ottla.console.serving.app import Console, make_app
from ottla.console.settings import ConsoleSettings
from ottla.runtime.signals import StopSignals
from ottla.satellite.listener import raise_descriptor_limit
from ottla.satellite.server import listening, serve
from ottla.satellite.settings import UnusableSettings

_SWEEP_S: Final = 30.0


class ConsoleFailure(Exception):
    """A console that cannot start."""


def run_console(settings: ConsoleSettings, ready: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT. `ready` gets the URL. Raises ConsoleFailure."""
    try:
        asyncio.run(_run(settings, ready))
    except (UnusableSettings, InvalidProperty, ClientError) as error:
        raise ConsoleFailure(str(error)) from error


async def _run(settings: ConsoleSettings, ready: Callable[[str], None]) -> None:
    settings.check()
    http = settings.http
    raise_descriptor_limit()
    stop = asyncio.Event()
    StopSignals(asyncio.get_running_loop(), stop.set).install()
    with listening(http) as listener:
        console = Console(settings)
        console.port = listener.getsockname()[1]
        sweeping = asyncio.create_task(_sweep(console))
        stopping = asyncio.create_task(_tell_streams(console, stop))
        ready(http.url(console.port))
        try:
            await serve(make_app(console, ROUTES), listener, http, stop)
        finally:
            sweeping.cancel()
            stopping.cancel()
            await console.close()


async def _tell_streams(console: Console, stop: asyncio.Event) -> None:
    """Have pages that are followed end, so that nothing waits for them."""
    await stop.wait()
    console.is_stopping = True


async def _sweep(console: Console) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        await console.sweep()
