"""Configs of a group, of any kind. What a group does not set it takes from the broker (`broker_key`)."""

from ottla.metadata.configs.declare import ConfigValues, boolean, integer, string
from ottla.metadata.configs.rules import OffsetReset, OneOf, Range


class GroupConfig(ConfigValues):
    """Configs of a group, of any kind. What a group does not set it takes from the broker (`broker_key`)."""

    consumer_assignment_interval_ms = integer(
        "consumer.assignment.interval.ms",
        1000,
        Range(0),
        broker_key="group.consumer.assignment.interval.ms",
        doc="Group override of assignment pause.",
    )
    consumer_heartbeat_interval_ms = integer(
        "consumer.heartbeat.interval.ms",
        5000,
        Range(1),
        broker_key="group.consumer.heartbeat.interval.ms",
        doc="Group override of heartbeat interval.",
    )
    consumer_session_timeout_ms = integer(
        "consumer.session.timeout.ms",
        45_000,
        Range(1),
        broker_key="group.consumer.session.timeout.ms",
        doc="Group override of session timeout.",
    )
    share_assignment_interval_ms = integer(
        "share.assignment.interval.ms",
        1000,
        Range(0),
        broker_key="group.share.assignment.interval.ms",
        doc="Group override of broker setting group.share.assignment.interval.ms.",
    )
    share_auto_offset_reset = string(
        "share.auto.offset.reset",
        "latest",
        OffsetReset(),
        doc="Start of a new share partition: latest, earliest or by_duration.",
    )
    share_delivery_count_limit = integer(
        "share.delivery.count.limit",
        5,
        Range(2),
        broker_key="group.share.delivery.count.limit",
        doc="Group override of broker setting group.share.delivery.count.limit.",
    )
    share_heartbeat_interval_ms = integer(
        "share.heartbeat.interval.ms",
        5000,
        Range(1),
        broker_key="group.share.heartbeat.interval.ms",
        doc="Group override of broker setting group.share.heartbeat.interval.ms.",
    )
    share_isolation_level = string(
        "share.isolation.level",
        "read_uncommitted",
        OneOf(("read_committed", "read_uncommitted")),
        doc="Visibility of transactional records for share consumers.",
    )
    share_partition_max_record_locks = integer(
        "share.partition.max.record.locks",
        2000,
        Range(100),
        broker_key="group.share.partition.max.record.locks",
        doc="Group override of broker setting group.share.partition.max.record.locks.",
    )
    share_record_lock_duration_ms = integer(
        "share.record.lock.duration.ms",
        30_000,
        Range(1000),
        broker_key="group.share.record.lock.duration.ms",
        doc="Group override of broker setting group.share.record.lock.duration.ms.",
    )
    share_renew_acknowledge_enable = boolean(
        "share.renew.acknowledge.enable", True, doc="Allow renewing locks."
    )
    share_session_timeout_ms = integer(
        "share.session.timeout.ms",
        45_000,
        Range(1),
        broker_key="group.share.session.timeout.ms",
        doc="Group override of broker setting group.share.session.timeout.ms.",
    )
    streams_assignment_interval_ms = integer(
        "streams.assignment.interval.ms",
        1000,
        Range(0),
        broker_key="group.streams.assignment.interval.ms",
        doc="Group override of broker setting group.streams.assignment.interval.ms.",
    )
    streams_heartbeat_interval_ms = integer(
        "streams.heartbeat.interval.ms",
        5000,
        Range(1),
        broker_key="group.streams.heartbeat.interval.ms",
        doc="Group override of broker setting group.streams.heartbeat.interval.ms.",
    )
    streams_initial_rebalance_delay_ms = integer(
        "streams.initial.rebalance.delay.ms",
        3000,
        Range(0),
        broker_key="group.streams.initial.rebalance.delay.ms",
        doc="Group override of broker setting group.streams.initial.rebalance.delay.ms.",
    )
    streams_num_standby_replicas = integer(
        "streams.num.standby.replicas",
        0,
        Range(0),
        broker_key="group.streams.num.standby.replicas",
        doc="Group override of broker setting group.streams.num.standby.replicas.",
    )
    streams_session_timeout_ms = integer(
        "streams.session.timeout.ms",
        45_000,
        Range(1),
        broker_key="group.streams.session.timeout.ms",
        doc="Group override of broker setting group.streams.session.timeout.ms.",
    )
