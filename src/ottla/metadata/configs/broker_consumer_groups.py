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
        doc="Min pause between target assignments of a consumer group (4.3).",
    )
    group_consumer_assignors = listing(
        "group.consumer.assignors",
        ("uniform", "range"),
        DistinctList(may_be_empty=False),
        update=READ_ONLY,
        doc="Server side assignors; first is default.",
    )
    group_consumer_heartbeat_interval_ms = integer(
        "group.consumer.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Heartbeat interval told to KIP-848 members.",
    )
    group_consumer_max_assignment_interval_ms = integer(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        Range(0),
        update=READ_ONLY,
        doc="Upper limit for the group-level setting.",
    )
    group_consumer_max_heartbeat_interval_ms = integer(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        Range(1),
        update=READ_ONLY,
        doc="Upper limit for the group-level setting.",
    )
    group_consumer_max_session_timeout_ms = integer(
        "group.consumer.max.session.timeout.ms",
        60_000,
        Range(1),
        update=READ_ONLY,
        doc="Upper limit for the group-level setting.",
    )
    group_consumer_max_size = integer(
        "group.consumer.max.size", INT_MAX, Range(1), update=READ_ONLY, doc="Members per consumer group."
    )
    group_consumer_migration_policy = string(
        "group.consumer.migration.policy",
        "bidirectional",
        OneOfIgnoringCase(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")),
        update=READ_ONLY,
        doc="Allowed live conversion between classic and consumer protocol.",
    )
    group_consumer_min_assignment_interval_ms = integer(
        "group.consumer.min.assignment.interval.ms",
        0,
        Range(0),
        update=READ_ONLY,
        doc="Lower limit for the group-level setting.",
    )
    group_consumer_min_heartbeat_interval_ms = integer(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Lower limit for the group-level setting.",
    )
    group_consumer_min_session_timeout_ms = integer(
        "group.consumer.min.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Lower limit for the group-level setting.",
    )
    group_consumer_regex_refresh_interval_ms = integer(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        Range(10_000),
        update=READ_ONLY,
        internal=True,
        doc="Internal: re-evaluate topic regexes at least this often.",
    )
    group_consumer_session_timeout_ms = integer(
        "group.consumer.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="KIP-848 member removed after this silence.",
    )
