"""The admin client as its users see it: one attribute for each noun.

async with Admin("127.0.0.1:9092") as admin:
    await admin.topics.create("payments", partitions=6)
    for topic in await admin.topics.list():
        print(topic.name)

A noun is imported when it is first used. With all of them it took twice as long until a command had begun.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ottla.client.admin.routes import Routes
from ottla.client.admin.settings import AdminSettings
from ottla.client.opened import Opened
from ottla.client.properties import Properties
from ottla.client.security import cluster_for

if TYPE_CHECKING:
    from ottla.client.admin.access_rules import AccessRules
    from ottla.client.admin.cluster import ClusterInfo
    from ottla.client.admin.configs import Configs
    from ottla.client.admin.credentials import Credentials
    from ottla.client.admin.delegation_tokens import DelegationTokens
    from ottla.client.admin.group_offsets import GroupOffsets
    from ottla.client.admin.groups import Groups
    from ottla.client.admin.log_dirs import LogDirs
    from ottla.client.admin.offsets import Offsets
    from ottla.client.admin.quorum import Quorum
    from ottla.client.admin.quotas import Quotas
    from ottla.client.admin.records import StoredRecords
    from ottla.client.admin.replicas import Replicas
    from ottla.client.admin.reset_plans import ResetPlans
    from ottla.client.admin.share_groups import ShareGroups
    from ottla.client.admin.topics import Topics
    from ottla.client.admin.transactions import Transactions


class Admin(Opened):
    """Looks after a cluster. One serves any number of tasks."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Properties | None = None,
        **settings: Any,
    ) -> None:
        chosen = AdminSettings.of(properties, bootstrap_servers=bootstrap_servers, **settings)
        self._cluster = cluster_for(
            chosen,
            retry_timeout_ms=chosen.default_api_timeout_ms,
            max_age_s=chosen.metadata_max_age_ms / 1000,
        )
        self._routes = Routes(self._cluster, chosen.default_api_timeout_ms, chosen.request_timeout_ms)

    async def start(self) -> None:
        """Find the cluster."""
        await self._cluster.start()

    async def close(self) -> None:
        """Close all connections."""
        await self._cluster.close()

    @cached_property
    def cluster(self) -> "ClusterInfo":
        """The cluster and its brokers."""
        from ottla.client.admin.cluster import ClusterInfo

        return ClusterInfo(self._routes)

    @cached_property
    def quorum(self) -> "Quorum":
        """The quorum of the controllers."""
        from ottla.client.admin.quorum import Quorum

        return Quorum(self._routes)

    @cached_property
    def topics(self) -> "Topics":
        """Topics and their partitions."""
        from ottla.client.admin.topics import Topics

        return Topics(self._routes)

    @cached_property
    def configs(self) -> "Configs":
        """Configs of topics, brokers and groups."""
        from ottla.client.admin.configs import Configs

        return Configs(self._routes)

    @cached_property
    def records(self) -> "StoredRecords":
        """Records, to be deleted."""
        from ottla.client.admin.records import StoredRecords

        return StoredRecords(self._routes, self.topics)

    @cached_property
    def offsets(self) -> "Offsets":
        """Where partitions begin and end."""
        from ottla.client.admin.offsets import Offsets

        return Offsets(self._routes)

    @cached_property
    def groups(self) -> "Groups":
        """Consumer groups."""
        from ottla.client.admin.groups import Groups

        return Groups(self._routes)

    @cached_property
    def group_offsets(self) -> "GroupOffsets":
        """What groups have committed."""
        from ottla.client.admin.group_offsets import GroupOffsets

        return GroupOffsets(self._routes, self.groups, self.offsets, self._reset_plans)

    @cached_property
    def share_groups(self) -> "ShareGroups":
        """Share groups, and how far they are."""
        from ottla.client.admin.share_groups import ShareGroups

        return ShareGroups(self._routes, self._reset_plans)

    @cached_property
    def transactions(self) -> "Transactions":
        """Transactions and producers."""
        from ottla.client.admin.transactions import Transactions

        return Transactions(self._routes)

    @cached_property
    def replicas(self) -> "Replicas":
        """Where replicas are, and who leads."""
        from ottla.client.admin.replicas import Replicas

        return Replicas(self._routes)

    @cached_property
    def log_dirs(self) -> "LogDirs":
        """The directories of brokers."""
        from ottla.client.admin.log_dirs import LogDirs

        return LogDirs(self._routes)

    @cached_property
    def quotas(self) -> "Quotas":
        """Quotas of clients."""
        from ottla.client.admin.quotas import Quotas

        return Quotas(self._routes)

    @cached_property
    def access_rules(self) -> "AccessRules":
        """Access rules: who may do what."""
        from ottla.client.admin.access_rules import AccessRules

        return AccessRules(self._routes)

    @cached_property
    def credentials(self) -> "Credentials":
        """SCRAM credentials of users."""
        from ottla.client.admin.credentials import Credentials

        return Credentials(self._routes)

    @cached_property
    def delegation_tokens(self) -> "DelegationTokens":
        """Delegation tokens, which stand for a login."""
        from ottla.client.admin.delegation_tokens import DelegationTokens

        return DelegationTokens(self._routes)

    @cached_property
    def _reset_plans(self) -> "ResetPlans":
        from ottla.client.admin.reset_plans import ResetPlans

        return ResetPlans(self.offsets, self.topics)
