"""The servers beside the clusters of a console, one client for each, opened at the first look."""

import httpx

from ottla.console.looks.satellites.connectors import Connectors
from ottla.console.looks.satellites.schemas import Schemas
from ottla.console.settings import ClusterSettings


class Satellites:
    """All of them."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._schemas: dict[str, Schemas] = {}
        self._connectors: dict[str, Connectors] = {}

    def schemas(self, cluster: ClusterSettings) -> Schemas | None:
        """Return the registry of a cluster, if one is known."""
        if cluster.registry_url is None:
            return None
        if cluster.name not in self._schemas:
            self._schemas[cluster.name] = Schemas(cluster.registry_url)
        return self._schemas[cluster.name]

    def connectors(self, cluster: ClusterSettings) -> Connectors | None:
        """Return the worker of a cluster, if one is known."""
        if cluster.connect_url is None:
            return None
        if cluster.name not in self._connectors:
            self._connectors[cluster.name] = Connectors(cluster.connect_url, self._transport)
        return self._connectors[cluster.name]

    async def close(self) -> None:
        """Close all connections."""
        for registry in self._schemas.values():
            registry.close()
        for worker in self._connectors.values():
            await worker.close()
