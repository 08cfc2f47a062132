"""A cluster as one visitor sees it: the connections, and what was read over them.

What one visitor has read, no other visitor gets: they may have other rights.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.cluster import Cluster
from ottla.client.security import cluster_for
from ottla.console.looks.decoding import Decoding
from ottla.console.looks.groups import read_groups
from ottla.console.looks.kept import Kept
from ottla.console.looks.topics import read_topics
from ottla.console.settings import ClusterSettings
from ottla.explain.access import Access

_PATIENCE: Final = {
    "client.id": "ottla-console",
    "default.api.timeout.ms": "15000",
    "request.timeout.ms": "10000",
    "socket.connection.setup.timeout.ms": "5000",
}
_RETRY_MS: Final = 10_000


class Visit:
    """One cluster and one visitor."""

    def __init__(
        self, settings: ClusterSettings, properties: Mapping[str, str], user: str | None, decoding: Decoding
    ) -> None:
        self.settings = settings
        self.user = user
        self.decoding = decoding
        self.properties = {**_PATIENCE, **properties}
        self.access = Access(
            Admin(properties=self.properties),
            cluster_for(AdminSettings.of(dict(self.properties)), retry_timeout_ms=_RETRY_MS),
        )
        self.topics = Kept(lambda: read_topics(self.access))
        self.groups = Kept(lambda: read_groups(self.access))

    async def start(self) -> None:
        """Find the cluster, and log in."""
        await self.access.admin.start()
        try:
            await self.access.cluster.start()
        except BaseException:
            await self.access.admin.close()
            raise

    @asynccontextmanager
    async def own_cluster(self) -> AsyncIterator[Cluster]:
        """Give connections that nobody else waits on, for what waits for records."""
        own = cluster_for(AdminSettings.of(dict(self.properties)), retry_timeout_ms=_RETRY_MS)
        await own.start()
        try:
            yield own
        finally:
            await own.close()

    async def close(self) -> None:
        """Close all connections."""
        self.topics.close()
        self.groups.close()
        await self.access.admin.close()
        await self.access.cluster.close()
