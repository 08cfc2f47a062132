"""Broker configs of quotas and replication throttles."""

from ottla.metadata.configs.declare import ConfigValues, integer, java_class, long
from ottla.metadata.configs.kinds import LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import Range
from ottla.metadata.configs.values import LONG_MAX


class BrokerQuotaConfigs(ConfigValues):
    """Broker configs of quotas and replication throttles."""

    alter_log_dirs_replication_quota_window_num = integer(
        "alter.log.dirs.replication.quota.window.num",
        11,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="The number of samples for the rate of moves between directories.",
    )
    alter_log_dirs_replication_quota_window_size_seconds = integer(
        "alter.log.dirs.replication.quota.window.size.seconds",
        1,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="The length of one such sample.",
    )
    client_quota_callback_class = java_class(
        "client.quota.callback.class",
        None,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Java class that computes quotas.",
    )
    controller_quota_window_num = integer(
        "controller.quota.window.num",
        11,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="The number of samples for the rate of topic changes.",
    )
    controller_quota_window_size_seconds = integer(
        "controller.quota.window.size.seconds",
        1,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="The length of one such sample.",
    )
    follower_replication_throttled_rate = long(
        "follower.replication.throttled.rate",
        LONG_MAX,
        Range(0),
        update=PER_BROKER,
        unlisted=True,
        doc="Bytes per second that followers may fetch for their throttled replicas.",
    )
    leader_replication_throttled_rate = long(
        "leader.replication.throttled.rate",
        LONG_MAX,
        Range(0),
        update=PER_BROKER,
        unlisted=True,
        doc="Bytes per second that leaders may send for their throttled replicas.",
    )
    quota_window_num = integer(
        "quota.window.num",
        11,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="The number of samples for the rate of a client.",
    )
    quota_window_size_seconds = integer(
        "quota.window.size.seconds",
        1,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="The length of one such sample.",
    )
    remote_log_manager_copy_quota_window_num = integer(
        "remote.log.manager.copy.quota.window.num",
        11,
        Range(1),
        update=READ_ONLY,
        inert=True,
        doc="The number of samples for the rate of copying to remote storage.",
    )
    remote_log_manager_copy_quota_window_size_seconds = integer(
        "remote.log.manager.copy.quota.window.size.seconds",
        1,
        Range(1),
        update=READ_ONLY,
        inert=True,
        doc="The length of one such sample.",
    )
    remote_log_manager_fetch_quota_window_num = integer(
        "remote.log.manager.fetch.quota.window.num",
        11,
        Range(1),
        update=READ_ONLY,
        inert=True,
        doc="The number of samples for the rate of reading from remote storage.",
    )
    remote_log_manager_fetch_quota_window_size_seconds = integer(
        "remote.log.manager.fetch.quota.window.size.seconds",
        1,
        Range(1),
        update=READ_ONLY,
        inert=True,
        doc="The length of one such sample.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second = long(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG_MAX,
        Range(0),
        update=PER_BROKER,
        unlisted=True,
        doc="Bytes per second for moving replicas between directories.",
    )
    replication_quota_window_num = integer(
        "replication.quota.window.num",
        11,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="The number of samples for the rate of throttled replication.",
    )
    replication_quota_window_size_seconds = integer(
        "replication.quota.window.size.seconds",
        1,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="The length of one such sample.",
    )
