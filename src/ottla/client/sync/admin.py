"""The admin client for callers without an event loop: the same nouns, the same words, waiting for answers.

with Admin("127.0.0.1:9092") as admin:
    admin.topics.create("payments", partitions=6)
"""

from typing import Any, Generic, Self, TypeVar

from ottla.client.admin import admin as asynchronous
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
from ottla.client.admin.share_groups import ShareGroups
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import Transactions
from ottla.client.properties import Properties
from ottla.client.sync.loop_thread import LoopThread, blocking

T = TypeVar("T")


class Noun(Generic[T]):
    """One noun: it hands each call to its twin on the loop's thread."""

    def __init__(self, thread: LoopThread, twin: T) -> None:
        self._thread = thread
        self._twin = twin


class BlockingClusterInfo(Noun[ClusterInfo]):
    """The cluster and its brokers."""

    describe = blocking(ClusterInfo.describe)
    features = blocking(ClusterInfo.features)
    update_features = blocking(ClusterInfo.update_features)
    api_versions = blocking(ClusterInfo.api_versions)
    unregister = blocking(ClusterInfo.unregister)


class BlockingQuorum(Noun[Quorum]):
    """The quorum of a cluster (KRaft)."""

    describe = blocking(Quorum.describe)


class BlockingTopics(Noun[Topics]):
    """The topics of a cluster."""

    list = blocking(Topics.list)
    describe = blocking(Topics.describe)
    describe_many = blocking(Topics.describe_many)
    describe_page = blocking(Topics.describe_page)
    create = blocking(Topics.create)
    create_many = blocking(Topics.create_many)
    delete = blocking(Topics.delete)
    delete_many = blocking(Topics.delete_many)
    add_partitions = blocking(Topics.add_partitions)


class BlockingConfigs(Noun[Configs]):
    """The configs of a cluster."""

    describe = blocking(Configs.describe)
    describe_many = blocking(Configs.describe_many)
    alter = blocking(Configs.alter)
    alter_many = blocking(Configs.alter_many)
    list_resources = blocking(Configs.list_resources)


class BlockingStoredRecords(Noun[StoredRecords]):
    """The records of a cluster's partitions, as far as an operator may touch them."""

    delete = blocking(StoredRecords.delete)
    truncate = blocking(StoredRecords.truncate)


class BlockingOffsets(Noun[Offsets]):
    """The offsets of a cluster's partitions."""

    list = blocking(Offsets.list)
    earliest = blocking(Offsets.earliest)
    latest = blocking(Offsets.latest)


class BlockingGroups(Noun[Groups]):
    """The groups of a cluster."""

    list = blocking(Groups.list)
    describe = blocking(Groups.describe)
    describe_many = blocking(Groups.describe_many)
    delete = blocking(Groups.delete)
    delete_many = blocking(Groups.delete_many)
    remove_members = blocking(Groups.remove_members)


class BlockingGroupOffsets(Noun[GroupOffsets]):
    """The committed offsets of a cluster's groups."""

    list = blocking(GroupOffsets.list)
    list_many = blocking(GroupOffsets.list_many)
    alter = blocking(GroupOffsets.alter)
    delete = blocking(GroupOffsets.delete)
    lag = blocking(GroupOffsets.lag)
    plan_reset = blocking(GroupOffsets.plan_reset)


class BlockingShareGroups(Noun[ShareGroups]):
    """The share groups of a cluster."""

    describe = blocking(ShareGroups.describe)
    describe_many = blocking(ShareGroups.describe_many)
    offsets = blocking(ShareGroups.offsets)
    alter_offsets = blocking(ShareGroups.alter_offsets)
    delete_offsets = blocking(ShareGroups.delete_offsets)
    plan_reset = blocking(ShareGroups.plan_reset)


class BlockingTransactions(Noun[Transactions]):
    """The transactions of a cluster."""

    list = blocking(Transactions.list)
    describe = blocking(Transactions.describe)
    describe_many = blocking(Transactions.describe_many)
    producers = blocking(Transactions.producers)
    find_hanging = blocking(Transactions.find_hanging)
    abort = blocking(Transactions.abort)
    fence = blocking(Transactions.fence)


class BlockingReplicas(Noun[Replicas]):
    """The replicas of a cluster's partitions."""

    reassign = blocking(Replicas.reassign)
    reassignments = blocking(Replicas.reassignments)
    elect = blocking(Replicas.elect)


class BlockingLogDirs(Noun[LogDirs]):
    """The log directories of a cluster."""

    describe = blocking(LogDirs.describe)


class BlockingQuotas(Noun[Quotas]):
    """The quotas of a cluster."""

    describe = blocking(Quotas.describe)
    alter = blocking(Quotas.alter)
    alter_many = blocking(Quotas.alter_many)


class BlockingAccessRules(Noun[AccessRules]):
    """The access rules of a cluster."""

    list = blocking(AccessRules.list)
    create = blocking(AccessRules.create)
    delete = blocking(AccessRules.delete)


class BlockingCredentials(Noun[Credentials]):
    """The SCRAM credentials of a cluster."""

    describe = blocking(Credentials.describe)
    set_password = blocking(Credentials.set_password)
    delete = blocking(Credentials.delete)


class BlockingDelegationTokens(Noun[DelegationTokens]):
    """The delegation tokens of a cluster."""

    create = blocking(DelegationTokens.create)
    list = blocking(DelegationTokens.list)
    renew = blocking(DelegationTokens.renew)
    expire = blocking(DelegationTokens.expire)


class Admin:
    """Looks after a cluster. Any number of threads may share one."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Properties | None = None,
        **settings: Any,
    ) -> None:
        self._twin = asynchronous.Admin(bootstrap_servers, properties=properties, **settings)
        self._thread = thread = LoopThread("ottla-admin")
        self.cluster = BlockingClusterInfo(thread, self._twin.cluster)
        self.quorum = BlockingQuorum(thread, self._twin.quorum)
        self.topics = BlockingTopics(thread, self._twin.topics)
        self.configs = BlockingConfigs(thread, self._twin.configs)
        self.records = BlockingStoredRecords(thread, self._twin.records)
        self.offsets = BlockingOffsets(thread, self._twin.offsets)
        self.groups = BlockingGroups(thread, self._twin.groups)
        self.group_offsets = BlockingGroupOffsets(thread, self._twin.group_offsets)
        self.share_groups = BlockingShareGroups(thread, self._twin.share_groups)
        self.transactions = BlockingTransactions(thread, self._twin.transactions)
        self.replicas = BlockingReplicas(thread, self._twin.replicas)
        self.log_dirs = BlockingLogDirs(thread, self._twin.log_dirs)
        self.quotas = BlockingQuotas(thread, self._twin.quotas)
        self.access_rules = BlockingAccessRules(thread, self._twin.access_rules)
        self.credentials = BlockingCredentials(thread, self._twin.credentials)
        self.delegation_tokens = BlockingDelegationTokens(thread, self._twin.delegation_tokens)
        thread.run_first(self._twin.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and end the thread."""
        if self._thread.is_running:
            try:
                self._thread.run(self._twin.close())
            finally:
                self._thread.stop()
