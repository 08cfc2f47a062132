"""Broker configs of consumer groups (KIP-848)."""

from ottla.metadata.configs.declare import ConfigValues, integer, listing, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, OneOfIgnoringCase, Range
from ottla.metadata.configs.values import INT_MAX


class BrokerConsumerGroupConfigs(ConfigValues):
    """Broker configs of consumer groups (KIP-848)."""

    group_consumer_assignment_interval_ms = integer(
        "group.consumer.assignment.interval.ms",
        1000,
        Range(0),
        update=CLUSTER_WIDE,
        doc=(
            "Shortest time between two assignments of a consumer group; sets the group's "
            "consumer.assignment.interval.ms."
        ),
    )
    group_consumer_assignors = listing(
        "group.consumer.assignors",
        ("uniform", "range"),
        DistinctList(may_be_empty=False),
        update=READ_ONLY,
        doc="The assignors that consumer groups can choose from; the first is the default.",
    )
    group_consumer_heartbeat_interval_ms = integer(
        "group.consumer.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="How often members of a consumer group must send heartbeats.",
    )
    group_consumer_max_assignment_interval_ms = integer(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        Range(0),
        update=READ_ONLY,
        doc="Highest consumer.assignment.interval.ms that a group may have.",
    )
    group_consumer_max_heartbeat_interval_ms = integer(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        Range(1),
        update=READ_ONLY,
        doc="Highest consumer.heartbeat.interval.ms that a group may have.",
    )
    group_consumer_max_session_timeout_ms = integer(
        "group.consumer.max.session.timeout.ms",
        60_000,
        Range(1),
        update=READ_ONLY,
        doc="Highest consumer.session.timeout.ms that a group may have.",
    )
    group_consumer_max_size = integer(
        "group.consumer.max.size",
        INT_MAX,
        Range(1),
        update=READ_ONLY,
        doc="The maximum number of members of a consumer group.",
    )
    group_consumer_migration_policy = string(
        "group.consumer.migration.policy",
        "bidirectional",
        OneOfIgnoringCase(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")),
        update=READ_ONLY,
        doc="Whether a group may switch between the classic and the consumer protocol while it has members.",
    )
    group_consumer_min_assignment_interval_ms = integer(
        "group.consumer.min.assignment.interval.ms",
        0,
        Range(0),
        update=READ_ONLY,
        doc="Lowest consumer.assignment.interval.ms that a group may have.",
    )
    group_consumer_min_heartbeat_interval_ms = integer(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Lowest consumer.heartbeat.interval.ms that a group may have.",
    )
    group_consumer_min_session_timeout_ms = integer(
        "group.consumer.min.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Lowest consumer.session.timeout.ms that a group may have.",
    )
    group_consumer_regex_refresh_interval_ms = integer(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        Range(10_000),
        update=READ_ONLY,
        internal=True,
        doc="How often the topics that match a group's regular expressions are looked up again at the "
        "latest.",
    )
    group_consumer_session_timeout_ms = integer(
        "group.consumer.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="A member of a consumer group is removed if it sends no heartbeat for this long.",
    )
