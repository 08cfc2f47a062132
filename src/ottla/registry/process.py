"""A registry as a process: `ottla registry`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ottla.client.errors import ClientError
from ottla.client.properties import InvalidProperty, Properties
from ottla.registry.leading.protocol import Identity
from ottla.registry.service import Registry, RegistrySettings
from ottla.registry.serving.app import RegistryApi
from ottla.satellite.process import run_satellite
from ottla.satellite.settings import HttpSettings, UnusableSettings


class RegistryFailure(Exception):
    """A registry that cannot start."""


@dataclass(frozen=True)
class RegistryOptions:
    """All that a registry needs to know."""

    properties: Properties
    http: HttpSettings = field(default_factory=HttpSettings)
    registry: RegistrySettings = field(default_factory=RegistrySettings)


def run_registry(options: RegistryOptions, ready: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT. `ready` gets the URL. Raises RegistryFailure."""
    try:
        asyncio.run(_run(options, ready))
    except (UnusableSettings, InvalidProperty, ClientError) as error:
        raise RegistryFailure(str(error)) from error


async def _run(options: RegistryOptions, ready: Callable[[str], None]) -> None:
    tls = options.http.tls_to_others()

    def make(url: str) -> tuple[Registry, RegistryApi]:
        parts = urlsplit(url)
        assert parts.hostname is not None, "it is ours"
        assert parts.port is not None, "it is ours"
        settings = options.registry
        identity = Identity(parts.hostname, parts.port, parts.scheme, is_eligible=settings.is_eligible)
        registry = Registry(
            options.properties, settings, identity, tls, trusts_group=options.http.trusts_group
        )
        return registry, RegistryApi(registry)

    await run_satellite(options.http, make, ready)
