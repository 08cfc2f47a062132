"""Broker configs of topics as a whole: creation, deletion, leadership."""

from ottla.metadata.configs.declare import ConfigValues, boolean, integer, java_class, long
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import Range


class BrokerTopicConfigs(ConfigValues):
    """Broker configs of topics as a whole: creation, deletion, leadership."""

    alter_config_policy_class_name = java_class(
        "alter.config.policy.class.name",
        None,
        importance=LOW,
        update=READ_ONLY,
        doc="Plugin that may veto config changes.",
    )
    auto_create_topics_enable = boolean(
        "auto.create.topics.enable",
        True,
        importance=HIGH,
        update=READ_ONLY,
        doc="Create unknown topics on Metadata requests.",
    )
    auto_leader_rebalance_enable = boolean(
        "auto.leader.rebalance.enable",
        True,
        importance=HIGH,
        update=READ_ONLY,
        doc="Controller periodically moves leadership back to preferred replica.",
    )
    create_topic_policy_class_name = java_class(
        "create.topic.policy.class.name",
        None,
        importance=LOW,
        update=READ_ONLY,
        doc="Plugin that may veto topic creation.",
    )
    default_replication_factor = integer(
        "default.replication.factor",
        1,
        update=READ_ONLY,
        doc="RF when CreateTopics says -1 and for auto-created topics.",
    )
    delete_topic_enable = boolean(
        "delete.topic.enable", True, importance=HIGH, update=READ_ONLY, doc="False = DeleteTopics refused."
    )
    leader_imbalance_check_interval_seconds = long(
        "leader.imbalance.check.interval.seconds",
        300,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Period of preferred leader check.",
    )
    max_request_partition_size_limit = integer(
        "max.request.partition.size.limit",
        2000,
        Range(1),
        update=READ_ONLY,
        doc="Cap for DescribeTopicPartitions.",
    )
    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="ISR size needed for acks=all.",
    )
    num_partitions = integer(
        "num.partitions", 1, Range(1), update=READ_ONLY, doc="Partitions when unspecified."
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Allow a non in-sync leader.",
    )
    unclean_leader_election_interval_ms = long(
        "unclean.leader.election.interval.ms",
        300_000,
        Range(1),
        update=READ_ONLY,
        internal=True,
        doc="Internal: period of unclean election check.",
    )
