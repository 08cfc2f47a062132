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
        doc=(
            "Shortest time between two assignments of a share group; sets the group's "
            "share.assignment.interval.ms."
        ),
    )
    group_share_assignors = listing(
        "group.share.assignors",
        ("simple",),
        DistinctList(may_be_empty=False),
        update=READ_ONLY,
        inert=True,
        doc="The assignor of share groups.",
    )
    group_share_delivery_count_limit = integer(
        "group.share.delivery.count.limit",
        5,
        Range(2, 10),
        update=READ_ONLY,
        doc="How often a record is delivered to a share group before it counts as undeliverable.",
    )
    group_share_heartbeat_interval_ms = integer(
        "group.share.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="How often members of a share group must send heartbeats.",
    )
    group_share_initialize_retry_interval_ms = integer(
        "group.share.initialize.retry.interval.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="How often the initialization of the state of a share group is retried.",
    )
    group_share_max_assignment_interval_ms = integer(
        "group.share.max.assignment.interval.ms",
        15_000,
        Range(0),
        update=READ_ONLY,
        doc="Highest share.assignment.interval.ms that a group may have.",
    )
    group_share_max_delivery_count_limit = integer(
        "group.share.max.delivery.count.limit",
        10,
        Range(5, 25),
        update=READ_ONLY,
        doc="Highest share.delivery.count.limit that a group may have.",
    )
    group_share_max_heartbeat_interval_ms = integer(
        "group.share.max.heartbeat.interval.ms",
        15_000,
        Range(1),
        update=READ_ONLY,
        doc="Highest share.heartbeat.interval.ms that a group may have.",
    )
    group_share_max_partition_max_record_locks = integer(
        "group.share.max.partition.max.record.locks",
        4000,
        Range(2000, 10_000),
        update=READ_ONLY,
        doc="Highest share.partition.max.record.locks that a group may have.",
    )
    group_share_max_record_lock_duration_ms = integer(
        "group.share.max.record.lock.duration.ms",
        60_000,
        Range(30_000, 3_600_000),
        update=READ_ONLY,
        doc="Highest share.record.lock.duration.ms that a group may have.",
    )
    group_share_max_session_timeout_ms = integer(
        "group.share.max.session.timeout.ms",
        60_000,
        Range(1),
        update=READ_ONLY,
        doc="Highest share.session.timeout.ms that a group may have.",
    )
    group_share_max_share_sessions = integer(
        "group.share.max.share.sessions",
        2000,
        Range(1),
        update=READ_ONLY,
        doc="The maximum number of share sessions of a broker.",
    )
    group_share_max_size = integer(
        "group.share.max.size",
        200,
        Range(1, 1000),
        update=READ_ONLY,
        doc="The maximum number of members of a share group.",
    )
    group_share_min_assignment_interval_ms = integer(
        "group.share.min.assignment.interval.ms",
        0,
        Range(0),
        update=READ_ONLY,
        doc="Lowest share.assignment.interval.ms that a group may have.",
    )
    group_share_min_delivery_count_limit = integer(
        "group.share.min.delivery.count.limit",
        2,
        Range(2, 5),
        update=READ_ONLY,
        doc="Lowest share.delivery.count.limit that a group may have.",
    )
    group_share_min_heartbeat_interval_ms = integer(
        "group.share.min.heartbeat.interval.ms",
        5000,
        Range(1),
        update=READ_ONLY,
        doc="Lowest share.heartbeat.interval.ms that a group may have.",
    )
    group_share_min_partition_max_record_locks = integer(
        "group.share.min.partition.max.record.locks",
        100,
        Range(100, 2000),
        update=READ_ONLY,
        doc="Lowest share.partition.max.record.locks that a group may have.",
    )
    group_share_min_record_lock_duration_ms = integer(
        "group.share.min.record.lock.duration.ms",
        15_000,
        Range(1000, 30_000),
        update=READ_ONLY,
        doc="Lowest share.record.lock.duration.ms that a group may have.",
    )
    group_share_min_session_timeout_ms = integer(
        "group.share.min.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="Lowest share.session.timeout.ms that a group may have.",
    )
    group_share_partition_max_record_locks = integer(
        "group.share.partition.max.record.locks",
        2000,
        Range(100, 10_000),
        update=READ_ONLY,
        doc="The maximum number of records of a partition that are being delivered at once.",
    )
    group_share_persister_class_name = string(
        "group.share.persister.class.name",
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="Java class that stores the state of share groups.",
    )
    group_share_record_lock_duration_ms = integer(
        "group.share.record.lock.duration.ms",
        30_000,
        Range(1000, 3_600_000),
        update=READ_ONLY,
        doc="How long a record is locked for a member of a share group before another member may get it.",
    )
    group_share_session_timeout_ms = integer(
        "group.share.session.timeout.ms",
        45_000,
        Range(1),
        update=READ_ONLY,
        doc="A member of a share group is removed if it sends no heartbeat for this long.",
    )
    share_coordinator_append_linger_ms = integer(
        "share.coordinator.append.linger.ms",
        -1,
        Range(-1),
        update=READ_ONLY,
        inert=True,
        doc=(
            "How long the share coordinator collects records before it writes them; -1 means while it is "
            "busy."
        ),
    )
    share_coordinator_cached_buffer_max_bytes = integer(
        "share.coordinator.cached.buffer.max.bytes",
        1_048_588,
        Range(524_288),
        update=CLUSTER_WIDE,
        inert=True,
        doc="Largest buffer that the share coordinator keeps for reuse.",
    )
    share_coordinator_cold_partition_snapshot_interval_ms = integer(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="How often the state of partitions that rarely change is written again.",
    )
    share_coordinator_load_buffer_size = integer(
        "share.coordinator.load.buffer.size",
        5_242_880,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many bytes are read at once when share state is loaded from its topic.",
    )
    share_coordinator_snapshot_update_records_per_snapshot = integer(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        Range(0, 500),
        update=READ_ONLY,
        doc="How many changes of share state are written before a full snapshot.",
    )
    share_coordinator_state_topic_compression_codec = integer(
        "share.coordinator.state.topic.compression.codec",
        0,
        importance=HIGH,
        update=READ_ONLY,
        doc="The compression of records in `__share_group_state`, as the number of the codec.",
    )
    share_coordinator_state_topic_min_isr = short(
        "share.coordinator.state.topic.min.isr",
        2,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The min.insync.replicas of `__share_group_state`.",
    )
    share_coordinator_state_topic_num_partitions = integer(
        "share.coordinator.state.topic.num.partitions",
        50,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The number of partitions of `__share_group_state`. It must not change after the topic is "
        "created.",
    )
    share_coordinator_state_topic_prune_interval_ms = integer(
        "share.coordinator.state.topic.prune.interval.ms",
        300_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="How often obsolete records are deleted from `__share_group_state`.",
    )
    share_coordinator_state_topic_replication_factor = short(
        "share.coordinator.state.topic.replication.factor",
        3,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The replication factor of `__share_group_state`.",
    )
    share_coordinator_state_topic_segment_bytes = integer(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Segment size of `__share_group_state`.",
    )
    share_coordinator_threads = integer(
        "share.coordinator.threads",
        1,
        Range(1),
        update=READ_ONLY,
        inert=True,
        doc="The number of threads that run the share coordinator.",
    )
    share_coordinator_write_timeout_ms = integer(
        "share.coordinator.write.timeout.ms",
        5000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How long a change of share state waits for its replicas.",
    )
    share_fetch_purgatory_purge_interval_requests = integer(
        "share.fetch.purgatory.purge.interval.requests",
        1000,
        update=READ_ONLY,
        inert=True,
        doc="After how many finished requests Kafka clears its list of waiting share fetches.",
    )
