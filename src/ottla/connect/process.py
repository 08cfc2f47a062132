"""A worker as a process: `ottla connect`."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.client.errors import ClientError
from ottla.client.properties import InvalidProperty
from ottla.connect.configs.providers import read_providers
from ottla.connect.configs.secrets import Secrets, hide_in_logs
from ottla.connect.connectors.spark.shared_session import close_shared_session
from ottla.connect.errors import ConnectError
from ottla.connect.serving.app import ConnectApi
from ottla.connect.settings import read_settings
from ottla.connect.worker import Worker
from ottla.satellite.process import run_satellite
from ottla.satellite.settings import HttpSettings, UnusableSettings


class WorkerFailure(Exception):
    """A worker that cannot start."""


@dataclass(frozen=True)
class WorkerOptions:
    """All that a worker needs to know."""

    properties: Mapping[str, str]
    """By the names of Kafka's worker properties, those of its clients included."""
    http: HttpSettings = field(default_factory=HttpSettings)


def run_worker(options: WorkerOptions, ready: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT. `ready` gets the URL. Raises WorkerFailure."""
    try:
        asyncio.run(_run(options, ready))
    except (UnusableSettings, InvalidProperty, ConnectError, ClientError) as error:
        raise WorkerFailure(str(error)) from error


async def _run(options: WorkerOptions, ready: Callable[[str], None]) -> None:
    http = options.http
    secrets = Secrets()
    hide_in_logs(secrets)
    providers = read_providers(options.properties, secrets)
    settings, properties = read_settings(
        providers.resolve(options.properties),
        answers_tls=http.certificate is not None,
        wants_certificates=http.client_ca is not None,
    )
    tls = http.tls_to_others()

    def make(url: str) -> tuple[Worker, ConnectApi]:
        worker = Worker(properties, settings, url, providers, secrets, tls, trusts_group=http.trusts_group)
        return worker, ConnectApi(worker)

    try:
        await run_satellite(http, make, ready)
    finally:
        await asyncio.to_thread(close_shared_session)
