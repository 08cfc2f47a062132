"""Broker configs of share groups (KIP-932) and the share coordinator."""

from ottla.metadata.configs.declare import ConfigValues, integer, listing, short, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, Range


class BrokerShareGroupConfigs(ConfigValues):
    """Broker configs of share groups (KIP-932) and the share coordinator."""

    group_share_assignment_interval_ms = integer(
        "group.share.assignment.interval.ms",
        1000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="Min pause between target assignments of a share group.",
    )
    group_share_assignors = listing(
        "group.share.assignors",
        ("simple",),
        DistinctList(may_be_empty=False),
        update=READ_ONLY,
        doc="Assignors for share groups.",
    )
    group_share_delivery_count_limit = integer(
        "group.share.delivery.count.limit",
        5,
        Range(2, 10),
        update=READ_ONLY,
        doc="Max delivery attempts per record.",
    )
    group_share_heartbeat_interval_ms = integer(
        "group.share.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Heartbeat interval of share members.",
    )
    group_share_initialize_retry_interval_ms = integer(
        "group.share.initialize.retry.interval.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Internal: retry of state initialisation.",
    )
    group_share_max_assignment_interval_ms = integer(
        "group.share.max.assignment.interval.ms",
        15_000,
        Range(0),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting assignment.interval.ms of share groups.",
    )
    group_share_max_delivery_count_limit = integer(
        "group.share.max.delivery.count.limit",
        10,
        Range(5, 25),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting delivery.count.limit of share groups.",
    )
    group_share_max_heartbeat_interval_ms = integer(
        "group.share.max.heartbeat.interval.ms",
        15_000,
        Range(1),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting heartbeat.interval.ms of share groups.",
    )
    group_share_max_partition_max_record_locks = integer(
        "group.share.max.partition.max.record.locks",
        4000,
        Range(2000, 10_000),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting partition.max.record.locks of share groups.",
    )
    group_share_max_record_lock_duration_ms = integer(
        "group.share.max.record.lock.duration.ms",
        60_000,
        Range(30_000, 3_600_000),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting record.lock.duration.ms of share groups.",
    )
    group_share_max_session_timeout_ms = integer(
        "group.share.max.session.timeout.ms",
        60_000,
        Range(1),
        update=READ_ONLY,
        doc="Upper limit broker-side for group setting session.timeout.ms of share groups.",
    )
    group_share_max_share_sessions = integer(
        "group.share.max.share.sessions", 2000, Range(1), update=READ_ONLY, doc="Share sessions per broker."
    )
    group_share_max_size = integer(
        "group.share.max.size", 200, Range(1, 1000), update=READ_ONLY, doc="Members per share group."
    )
    group_share_min_assignment_interval_ms = integer(
        "group.share.min.assignment.interval.ms",
        0,
        Range(0),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting assignment.interval.ms of share groups.",
    )
    group_share_min_delivery_count_limit = integer(
        "group.share.min.delivery.count.limit",
        2,
        Range(2, 5),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting delivery.count.limit of share groups.",
    )
    group_share_min_heartbeat_interval_ms = integer(
        "group.share.min.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting heartbeat.interval.ms of share groups.",
    )
    group_share_min_partition_max_record_locks = integer(
        "group.share.min.partition.max.record.locks",
        100,
        Range(100, 2000),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting partition.max.record.locks of share groups.",
    )
    group_share_min_record_lock_duration_ms = integer(
        "group.share.min.record.lock.duration.ms",
        15_000,
        Range(1000, 30_000),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting record.lock.duration.ms of share groups.",
    )
    group_share_min_session_timeout_ms = integer(
        "group.share.min.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Lower limit broker-side for group setting session.timeout.ms of share groups.",
    )
    group_share_partition_max_record_locks = integer(
        "group.share.partition.max.record.locks",
        2000,
        Range(100, 10_000),
        update=READ_ONLY,
        doc="Records in flight per share partition.",
    )
    group_share_persister_class_name = string(
        "group.share.persister.class.name",
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        update=READ_ONLY,
        internal=True,
        doc="Internal: where share state is stored.",
    )
    group_share_record_lock_duration_ms = integer(
        "group.share.record.lock.duration.ms",
        30_000,
        Range(1000, 3_600_000),
        update=READ_ONLY,
        doc="Acquisition lock time.",
    )
    group_share_session_timeout_ms = integer(
        "group.share.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Share member removed after this silence.",
    )
    share_coordinator_append_linger_ms = integer(
        "share.coordinator.append.linger.ms",
        -1,
        Range(-1),
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: append linger ms.",
    )
    share_coordinator_cached_buffer_max_bytes = integer(
        "share.coordinator.cached.buffer.max.bytes",
        1_048_588,
        Range(524_288),
        update=CLUSTER_WIDE,
        doc="Share coordinator / __share_group_state: cached buffer max bytes.",
    )
    share_coordinator_cold_partition_snapshot_interval_ms = integer(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Share coordinator / __share_group_state: cold partition snapshot interval ms.",
    )
    share_coordinator_load_buffer_size = integer(
        "share.coordinator.load.buffer.size",
        5_242_880,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: load buffer size.",
    )
    share_coordinator_snapshot_update_records_per_snapshot = integer(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        Range(0, 500),
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: snapshot update records per snapshot.",
    )
    share_coordinator_state_topic_compression_codec = integer(
        "share.coordinator.state.topic.compression.codec",
        0,
        importance=HIGH,
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: state topic compression codec.",
    )
    share_coordinator_state_topic_min_isr = short(
        "share.coordinator.state.topic.min.isr",
        2,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: state topic min isr.",
    )
    share_coordinator_state_topic_num_partitions = integer(
        "share.coordinator.state.topic.num.partitions",
        50,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: state topic num partitions.",
    )
    share_coordinator_state_topic_prune_interval_ms = integer(
        "share.coordinator.state.topic.prune.interval.ms",
        300_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Share coordinator / __share_group_state: state topic prune interval ms.",
    )
    share_coordinator_state_topic_replication_factor = short(
        "share.coordinator.state.topic.replication.factor",
        3,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: state topic replication factor.",
    )
    share_coordinator_state_topic_segment_bytes = integer(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: state topic segment bytes.",
    )
    share_coordinator_threads = integer(
        "share.coordinator.threads",
        1,
        Range(1),
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: threads.",
    )
    share_coordinator_write_timeout_ms = integer(
        "share.coordinator.write.timeout.ms",
        5000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Share coordinator / __share_group_state: write timeout ms.",
    )
    share_fetch_purgatory_purge_interval_requests = integer(
        "share.fetch.purgatory.purge.interval.requests",
        1000,
        update=READ_ONLY,
        doc="Group override of broker setting group.share.fetch.purgatory.purge.interval.requests.",
    )
