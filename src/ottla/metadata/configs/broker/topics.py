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
        inert=True,
        doc="Java class that can refuse config changes.",
    )
    auto_create_topics_enable = boolean(
        "auto.create.topics.enable",
        True,
        importance=HIGH,
        update=READ_ONLY,
        doc="Create a topic if a client asks for one that does not exist and allows its creation.",
    )
    auto_leader_rebalance_enable = boolean(
        "auto.leader.rebalance.enable",
        True,
        importance=HIGH,
        update=READ_ONLY,
        doc="Move leadership back to preferred replicas from time to time.",
    )
    create_topic_policy_class_name = java_class(
        "create.topic.policy.class.name",
        None,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Java class that can refuse the creation of topics.",
    )
    default_replication_factor = integer(
        "default.replication.factor",
        1,
        update=READ_ONLY,
        doc="The default replication factor of new topics.",
    )
    delete_topic_enable = boolean(
        "delete.topic.enable",
        True,
        importance=HIGH,
        update=READ_ONLY,
        doc="Whether topics can be deleted.",
    )
    leader_imbalance_check_interval_seconds = long(
        "leader.imbalance.check.interval.seconds",
        300,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="How often the leaders are compared with the preferred leaders.",
    )
    max_request_partition_size_limit = integer(
        "max.request.partition.size.limit",
        2000,
        Range(1),
        update=READ_ONLY,
        doc="The maximum number of partitions in one response to DescribeTopicPartitions.",
    )
    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="How many replicas must have a record before a write with acks=all succeeds.",
    )
    num_partitions = integer(
        "num.partitions",
        1,
        Range(1),
        update=READ_ONLY,
        doc="The default number of partitions of new topics.",
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        importance=HIGH,
        update=CLUSTER_WIDE,
        inert=True,
        doc="Let a replica that may lack records become the leader if no other is left. Records can be lost.",
    )
    unclean_leader_election_interval_ms = long(
        "unclean.leader.election.interval.ms",
        300_000,
        Range(1),
        update=READ_ONLY,
        internal=True,
        doc="How often partitions that need an unclean leader election are looked for.",
    )
