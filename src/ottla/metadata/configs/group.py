"""Configs of a group, of any kind. What a group does not set it takes from the broker (see `broker_key`)."""

from ottla.metadata.configs.declare import boolean, integer, string
from ottla.metadata.configs.ottla import DeadLetterGroupConfigs
from ottla.metadata.configs.rules import OffsetReset, OneOf, Range


class GroupConfig(DeadLetterGroupConfigs):
    """Configs of a group, of any kind. What a group does not set it takes from the broker."""

    consumer_assignment_interval_ms = integer(
        "consumer.assignment.interval.ms",
        1000,
        Range(0),
        broker_key="group.consumer.assignment.interval.ms",
        doc="Shortest time between two assignments of this consumer group.",
    )
    consumer_heartbeat_interval_ms = integer(
        "consumer.heartbeat.interval.ms",
        5000,
        Range(1),
        broker_key="group.consumer.heartbeat.interval.ms",
        doc="How often members of this consumer group must send heartbeats.",
    )
    consumer_session_timeout_ms = integer(
        "consumer.session.timeout.ms",
        45_000,
        Range(1),
        broker_key="group.consumer.session.timeout.ms",
        doc="A member of this consumer group is removed if it sends no heartbeat for this long.",
    )
    share_assignment_interval_ms = integer(
        "share.assignment.interval.ms",
        1000,
        Range(0),
        broker_key="group.share.assignment.interval.ms",
        doc="Shortest time between two assignments of this share group.",
    )
    share_auto_offset_reset = string(
        "share.auto.offset.reset",
        "latest",
        OffsetReset(),
        doc=(
            "Where this share group starts to read: latest, earliest, or by_duration with a duration before "
            "now."
        ),
    )
    share_delivery_count_limit = integer(
        "share.delivery.count.limit",
        5,
        Range(2),
        broker_key="group.share.delivery.count.limit",
        doc="How often a record is delivered to this share group before it counts as undeliverable.",
    )
    share_heartbeat_interval_ms = integer(
        "share.heartbeat.interval.ms",
        5000,
        Range(1),
        broker_key="group.share.heartbeat.interval.ms",
        doc="How often members of this share group must send heartbeats.",
    )
    share_isolation_level = string(
        "share.isolation.level",
        "read_uncommitted",
        OneOf(("read_committed", "read_uncommitted")),
        doc="Whether this share group gets records of transactions that are not committed.",
    )
    share_partition_max_record_locks = integer(
        "share.partition.max.record.locks",
        2000,
        Range(100),
        broker_key="group.share.partition.max.record.locks",
        doc="The maximum number of records of a partition that are being delivered to this share group at "
        "once.",
    )
    share_record_lock_duration_ms = integer(
        "share.record.lock.duration.ms",
        30_000,
        Range(1000),
        broker_key="group.share.record.lock.duration.ms",
        doc="How long a record is locked for a member of this share group before another member may get it.",
    )
    share_renew_acknowledge_enable = boolean(
        "share.renew.acknowledge.enable",
        True,
        doc="Whether members of this share group may extend the lock of a record.",
    )
    share_session_timeout_ms = integer(
        "share.session.timeout.ms",
        45_000,
        Range(1),
        broker_key="group.share.session.timeout.ms",
        doc="A member of this share group is removed if it sends no heartbeat for this long.",
    )
    streams_assignment_interval_ms = integer(
        "streams.assignment.interval.ms",
        1000,
        Range(0),
        broker_key="group.streams.assignment.interval.ms",
        doc="Shortest time between two assignments of this streams group.",
    )
    streams_heartbeat_interval_ms = integer(
        "streams.heartbeat.interval.ms",
        5000,
        Range(1),
        broker_key="group.streams.heartbeat.interval.ms",
        doc="How often members of this streams group must send heartbeats.",
    )
    streams_initial_rebalance_delay_ms = integer(
        "streams.initial.rebalance.delay.ms",
        3000,
        Range(0),
        broker_key="group.streams.initial.rebalance.delay.ms",
        doc="How long this streams group waits for more members before its first assignment.",
    )
    streams_num_standby_replicas = integer(
        "streams.num.standby.replicas",
        0,
        Range(0),
        broker_key="group.streams.num.standby.replicas",
        doc="The number of standby copies of each task of this streams group.",
    )
    streams_session_timeout_ms = integer(
        "streams.session.timeout.ms",
        45_000,
        Range(1),
        broker_key="group.streams.session.timeout.ms",
        doc="A member of this streams group is removed if it sends no heartbeat for this long.",
    )
