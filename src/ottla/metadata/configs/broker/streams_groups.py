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
        doc=(
            "Shortest time between two assignments of a streams group; sets the group's "
            "streams.assignment.interval.ms."
        ),
    )
    group_streams_heartbeat_interval_ms = integer(
        "group.streams.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="How often members of a streams group must send heartbeats.",
    )
    group_streams_initial_rebalance_delay_ms = integer(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        Range(0),
        update=READ_ONLY,
        doc="How long a new streams group waits for more members before it assigns tasks.",
    )
    group_streams_max_assignment_interval_ms = integer(
        "group.streams.max.assignment.interval.ms",
        15_000,
        Range(0),
        update=READ_ONLY,
        doc="Highest streams.assignment.interval.ms that a group may have.",
    )
    group_streams_max_heartbeat_interval_ms = integer(
        "group.streams.max.heartbeat.interval.ms",
        15_000,
        Range(1),
        update=READ_ONLY,
        doc="Highest streams.heartbeat.interval.ms that a group may have.",
    )
    group_streams_max_session_timeout_ms = integer(
        "group.streams.max.session.timeout.ms",
        60_000,
        Range(1),
        update=READ_ONLY,
        doc="Highest streams.session.timeout.ms that a group may have.",
    )
    group_streams_max_size = integer(
        "group.streams.max.size",
        INT_MAX,
        Range(1),
        update=READ_ONLY,
        doc="The maximum number of members of a streams group.",
    )
    group_streams_max_standby_replicas = integer(
        "group.streams.max.standby.replicas",
        2,
        Range(0),
        update=READ_ONLY,
        doc="Highest streams.num.standby.replicas that a group may have.",
    )
    group_streams_min_assignment_interval_ms = integer(
        "group.streams.min.assignment.interval.ms",
        0,
        Range(0),
        update=READ_ONLY,
        doc="Lowest streams.assignment.interval.ms that a group may have.",
    )
    group_streams_min_heartbeat_interval_ms = integer(
        "group.streams.min.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Lowest streams.heartbeat.interval.ms that a group may have.",
    )
    group_streams_min_session_timeout_ms = integer(
        "group.streams.min.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Lowest streams.session.timeout.ms that a group may have.",
    )
    group_streams_num_standby_replicas = integer(
        "group.streams.num.standby.replicas",
        0,
        Range(0),
        update=READ_ONLY,
        doc="The number of standby copies of each task of a streams group.",
    )
    group_streams_session_timeout_ms = integer(
        "group.streams.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="A member of a streams group is removed if it sends no heartbeat for this long.",
    )
