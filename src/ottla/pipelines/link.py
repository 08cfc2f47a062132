"""A cluster for code that is not asyncio: Spark calls its sources and sinks as plain functions.

A link keeps one event loop and the connections of one client. The loop runs only while somebody waits. Python
workers of Spark serve many tasks one after the other, so links are kept for the life of the process: a task
then need not connect again. A process that was forked never uses its parent's links.
"""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from ottla.client.admin.group_offsets import GroupOffsets
from ottla.client.admin.groups import Groups
from ottla.client.admin.offsets import Offsets
from ottla.client.admin.reset_plans import ResetPlans
from ottla.client.admin.routes import Routes
from ottla.client.admin.topics import Topics
from ottla.client.cluster import Cluster
from ottla.client.properties import CommonSettings
from ottla.client.security import cluster_for
from ottla.pipelines.key_stores import context_of_stores, without_stores

T = TypeVar("T")


class Link:
    """One way to one cluster."""

    def __init__(
        self,
        properties: Mapping[str, str],
        retry_timeout_ms: int = 60_000,
        *,
        creates_topics: bool = True,
    ) -> None:
        settings = CommonSettings.of(without_stores(properties))
        self.cluster: Cluster = cluster_for(
            settings,
            allow_auto_topic_creation=creates_topics,
            retry_timeout_ms=retry_timeout_ms,
            tls=context_of_stores(properties),
        )
        routes = Routes(self.cluster, retry_timeout_ms, settings.request_timeout_ms)
        self.topics = Topics(routes)
        offsets = Offsets(routes)
        self.group_offsets = GroupOffsets(routes, Groups(routes), offsets, ResetPlans(offsets, self.topics))
        self._runner = asyncio.Runner()
        self._is_started = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run until the work is done."""
        if not self._is_started:
            try:
                self._runner.run(self.cluster.retry(self.cluster.start))
            except BaseException:
                # Python would complain that it was never begun.
                work.close()
                raise
            self._is_started = True
        return self._runner.run(work)

    def close(self) -> None:
        """Close the connections and the loop."""
        self._runner.run(self.cluster.close())
        self._runner.close()


_links: dict[tuple[int, int, tuple[tuple[str, str], ...]], Link] = {}


def shared_link(properties: Mapping[str, str], retry_timeout_ms: int = 60_000) -> Link:
    """Return this process's link with these properties. It stays open."""
    key = (os.getpid(), retry_timeout_ms, tuple(sorted(properties.items())))
    link = _links.get(key)
    if link is None:
        link = _links[key] = Link(properties, retry_timeout_ms)
    return link
