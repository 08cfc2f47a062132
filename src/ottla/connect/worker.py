"""A worker: one process of a group that shares connectors. Its parts are

    store        what the three topics of the group say, which all workers read
    membership   its share of the connectors, and the changes that it decides if it leads the group
    supervisor   what runs here
    internal     requests of workers to each other

The worker puts them together. Requests by HTTP reach them through it (`serving`).
"""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client.admin.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.security import cluster_for
from ottla.connect.catalog import all_plugins
from ottla.connect.configs.providers import ConfigProviders
from ottla.connect.configs.resolving import Resolver
from ottla.connect.configs.secrets import Secrets
from ottla.connect.configs.shared_keys import CONNECTOR_CLASS
from ottla.connect.fencing import Fencing
from ottla.connect.internal_requests import InternalRequests
from ottla.connect.membership import Membership
from ottla.connect.plugins import PluginKind
from ottla.connect.running.supervisor import Supervisor, Surroundings
from ottla.connect.settings import WorkerSettings
from ottla.connect.store.worker_store import WorkerStore


class Worker:
    """One worker."""

    def __init__(
        self,
        properties: Mapping[str, str],
        settings: WorkerSettings,
        url: str,
        providers: ConfigProviders,
        secrets: Secrets,
        tls: ssl.SSLContext,
        *,
        trusts_group: bool = False,
    ) -> None:
        self.properties = dict(properties)
        self.settings = settings
        self.url = url
        self.worker_id = url.partition("://")[2]
        self.secrets = secrets
        self.plugins = all_plugins()
        self.cluster_id = ""
        self.store = store = WorkerStore(properties, settings)
        self.configs = store.configs
        self._cluster = cluster_for(AdminSettings.of(properties), retry_timeout_ms=30_000)
        self.membership = Membership(self.properties, settings, url, store, self._cluster)
        self.change = self.membership.change
        self.internal = InternalRequests(
            url, store.configs, lambda: self.membership.leader_url, tls, trusts_group=trusts_group
        )
        self.instances = self.internal.instances
        self.fencing = Fencing(self.properties, settings, store, self.membership, self.internal)
        resolver = Resolver(self.plugins, providers, secrets)
        self.resolve = resolver.resolve
        given = Surroundings(self.properties, settings, self.plugins, resolver, secrets, self.worker_id)
        self.supervisor = Supervisor(given, store, self.membership, self.internal, self.fencing)

    @property
    def is_leader(self) -> bool:
        """Whether this worker decides about changes."""
        return self.membership.is_leader

    @property
    def leader_url(self) -> str | None:
        """Where the worker is that does; None while the group divides its work."""
        return self.membership.leader_url

    async def start(self) -> None:
        """Read the topics, and join the other workers."""
        await self._cluster.start()
        async with Admin(properties=self.properties) as admin:
            self.cluster_id = (await admin.cluster.describe()).cluster_id or ""
            await self.store.start(admin)
        self.supervisor.start()
        await self.membership.join(self.supervisor)

    async def stop(self) -> None:
        """Stop all tasks, so that they are found where they were, and leave the other workers."""
        await self.supervisor.stop_looking()
        await self.membership.stop_leading()
        self.membership.share = set()
        await self.supervisor.give_up_all()
        await self.membership.leave()
        await self.store.stop()
        await self._cluster.close()

    async def write_offsets(
        self, name: str, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> None:
        """Change where a source goes on. No task of it can write any more that was running before."""
        await self.fencing.fence(name)
        await self.store.write_offsets(name, offsets)

    def kind_of(self, config: Mapping[str, str]) -> str:
        """Return whether a configuration is of a source or of a sink."""
        plugin = self.plugins.find_connector(config.get(CONNECTOR_CLASS, ""))
        return "unknown" if plugin is None else plugin.kind.value

    def is_source(self, config: Mapping[str, str]) -> bool:
        """Say whether a configuration is of a source."""
        return self.kind_of(config) == PluginKind.SOURCE.value
