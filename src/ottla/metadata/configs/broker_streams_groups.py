"""Broker configs of streams groups (KIP-1071)."""

from ottla.metadata.configs.declare import ConfigValues, integer
from ottla.metadata.configs.kinds import CLUSTER_WIDE, READ_ONLY
from ottla.metadata.configs.rules import Range
from ottla.metadata.configs.values import INT_MAX


class BrokerStreamsGroupConfigs(ConfigValues):
    """Broker configs of streams groups (KIP-1071)."""

    group_streams_assignment_interval_ms = integer(
        "group.streams.assignment.interval.ms",
        1000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="Min pause between target assignments of a streams group.",
    )
    group_streams_heartbeat_interval_ms = integer(
        "group.streams.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Heartbeat interval of streams members.",
    )
    group_streams_initial_rebalance_delay_ms = integer(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        Range(0),
        update=READ_ONLY,
        doc="Wait for more streams members at start.",
    )
    group_streams_max_assignment_interval_ms = integer(
        "group.streams.max.assignment.interval.ms",
        15_000,
        Range(0),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting assignment.interval.ms of streams groups.",
    )
    group_streams_max_heartbeat_interval_ms = integer(
        "group.streams.max.heartbeat.interval.ms",
        15_000,
        Range(1),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting heartbeat.interval.ms of streams groups.",
    )
    group_streams_max_session_timeout_ms = integer(
        "group.streams.max.session.timeout.ms",
        60_000,
        Range(1),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting session.timeout.ms of streams groups.",
    )
    group_streams_max_size = integer(
        "group.streams.max.size", INT_MAX, Range(1), update=READ_ONLY, doc="Members per streams group."
    )
    group_streams_max_standby_replicas = integer(
        "group.streams.max.standby.replicas",
        2,
        Range(0),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting standby.replicas of streams groups.",
    )
    group_streams_min_assignment_interval_ms = integer(
        "group.streams.min.assignment.interval.ms",
        0,
        Range(0),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting assignment.interval.ms of streams groups.",
    )
    group_streams_min_heartbeat_interval_ms = integer(
        "group.streams.min.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting heartbeat.interval.ms of streams groups.",
    )
    group_streams_min_session_timeout_ms = integer(
        "group.streams.min.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting session.timeout.ms of streams groups.",
    )
    group_streams_num_standby_replicas = integer(
        "group.streams.num.standby.replicas",
        0,
        Range(0),
        update=READ_ONLY,
        doc="Standby copies of streams tasks.",
    )
    group_streams_session_timeout_ms = integer(
        "group.streams.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Streams member removed after this silence.",
    )
