"""The way to a cluster: an admin client, and connections to fetch with, opened and closed together."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.cluster import Cluster
from ottla.client.security import cluster_for


class Access(NamedTuple):
    """What explaining needs of a cluster. Everything that it does with it only reads."""

    admin: Admin
    cluster: Cluster


@asynccontextmanager
async def open_access(properties: Mapping[str, str]) -> AsyncIterator[Access]:
    """Open the way to a cluster for a while."""
    cluster = cluster_for(AdminSettings.of(dict(properties)))
    async with Admin(properties=dict(properties)) as admin:
        await cluster.start()
        try:
            yield Access(admin, cluster)
        finally:
            await cluster.close()
