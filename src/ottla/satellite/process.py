"""A satellite as a process: it listens, starts, serves, and stops on SIGTERM or SIGINT."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ottla.runtime.signals import StopSignals
from ottla.satellite.app import Api, make_app
from ottla.satellite.instances import InstanceDoor, Instances
from ottla.satellite.listener import raise_descriptor_limit
from ottla.satellite.login import LoginDoor
from ottla.satellite.metrics import Metrics, MetricsDoor
from ottla.satellite.refusals import OriginDoor, Refusals
from ottla.satellite.server import listening, serve
from ottla.satellite.settings import HttpSettings
from ottla.satellite.users import Users


class Satellite(Protocol):
    """What runs behind the server."""

    @property
    def instances(self) -> Instances:
        """This one among the others."""

    async def start(self) -> None:
        """Get ready."""

    async def stop(self) -> None:
        """Give up everything."""


def behind_doors(api: Api, instances: Instances, http: HttpSettings, users: Users | None) -> Any:
    """Return the application of a satellite, with all that a request has to pass before."""
    refusals = Refusals(api.answer_type(None))
    metrics = Metrics()
    app = make_app(api, metrics)
    if users is not None:
        app = LoginDoor(app, users, refusals)
    app = InstanceDoor(app, instances, refusals.unauthorized)
    return MetricsDoor(OriginDoor(app, http.names, refusals), metrics)


async def run_satellite(
    http: HttpSettings, make: Callable[[str], tuple[Satellite, Api]], ready: Callable[[str], None]
) -> None:
    """Run until SIGTERM or SIGINT. `make` gets the URL for others, `ready` that for clients.

    Raises UnusableSettings, and what starting raises.
    """
    http.check()
    raise_descriptor_limit()
    users = None if http.users_file is None else Users.read(http.users_file)
    stop = asyncio.Event()
    StopSignals(asyncio.get_running_loop(), stop.set).install()
    with listening(http) as listener:
        port: int = listener.getsockname()[1]
        satellite, api = make(http.url_for_others(port))
        starting = asyncio.create_task(satellite.start())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        try:
            if starting.done():
                starting.result()
                ready(http.url(port))
                app = behind_doors(api, satellite.instances, http, users)
                await serve(app, listener, http, stop)
        finally:
            stopping.cancel()
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await satellite.instances.close()
            await satellite.stop()
