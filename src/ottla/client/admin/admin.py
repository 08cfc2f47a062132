"""The admin client as its users see it: one attribute for each noun.

async with Admin("127.0.0.1:9092") as admin:
    await admin.topics.create("payments", partitions=6)
    for topic in await admin.topics.list():
        print(topic.name)
"""

from collections.abc import Mapping
from typing import Any, Self

from ottla.client.admin.cluster import ClusterInfo
from ottla.client.admin.configs import Configs
from ottla.client.admin.credentials import Credentials
from ottla.client.admin.group_offsets import GroupOffsets
from ottla.client.admin.groups import Groups
from ottla.client.admin.log_dirs import LogDirs
from ottla.client.admin.offsets import Offsets
from ottla.client.admin.quorum import Quorum
from ottla.client.admin.quotas import Quotas
from ottla.client.admin.records import StoredRecords
from ottla.client.admin.replicas import Replicas
from ottla.client.admin.routes import Routes
from ottla.client.admin.settings import AdminSettings
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import Transactions
from ottla.client.security import cluster_for


class Admin:
    """Looks after a cluster. One serves any number of tasks."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        if bootstrap_servers is not None:
            settings["bootstrap_servers"] = bootstrap_servers
        chosen = AdminSettings.of(properties, **settings)
        self._cluster = cluster_for(chosen, retry_timeout_ms=chosen.default_api_timeout_ms)
        routes = Routes(self._cluster, chosen.default_api_timeout_ms, chosen.request_timeout_ms)
        self.cluster = ClusterInfo(routes)
        self.quorum = Quorum(routes)
        self.topics = Topics(routes)
        self.configs = Configs(routes)
        self.records = StoredRecords(routes, self.topics)
        self.offsets = Offsets(routes)
        self.groups = Groups(routes)
        self.group_offsets = GroupOffsets(routes, self.groups, self.offsets, self.topics)
        self.transactions = Transactions(routes)
        self.replicas = Replicas(routes)
        self.log_dirs = LogDirs(routes)
        self.quotas = Quotas(routes)
        self.credentials = Credentials(routes)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Find the cluster."""
        await self._cluster.start()

    async def close(self) -> None:
        """Close all connections."""
        await self._cluster.close()
