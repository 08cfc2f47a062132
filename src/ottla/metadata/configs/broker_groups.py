"""Broker configs of the group coordinator: classic groups, offsets, the coordinator itself."""

from ottla.metadata.configs.declare import ConfigValues, integer, listing, long, short
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, Range
from ottla.metadata.configs.values import INT_MAX


class BrokerGroupConfigs(ConfigValues):
    """Broker configs of the group coordinator: classic groups, offsets, the coordinator itself."""

    group_coordinator_append_linger_ms = integer(
        "group.coordinator.append.linger.ms",
        -1,
        Range(-1),
        update=READ_ONLY,
        doc="How long the coordinator gathers writes; -1 adaptive.",
    )
    group_coordinator_background_threads = integer(
        "group.coordinator.background.threads",
        2,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Threads for regex work etc..",
    )
    group_coordinator_cached_buffer_max_bytes = integer(
        "group.coordinator.cached.buffer.max.bytes",
        1_048_588,
        Range(524_288),
        update=CLUSTER_WIDE,
        doc="Largest write buffer kept for reuse.",
    )
    group_coordinator_rebalance_protocols = listing(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        DistinctList(("consumer", "classic", "share", "streams"), may_be_empty=False),
        update=READ_ONLY,
        doc="Enabled group protocols (deprecated, use features).",
    )
    group_coordinator_threads = integer(
        "group.coordinator.threads",
        4,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Event loop threads of the group coordinator.",
    )
    group_initial_rebalance_delay_ms = integer(
        "group.initial.rebalance.delay.ms",
        3000,
        update=READ_ONLY,
        doc="Wait for more members when a classic group starts.",
    )
    group_max_session_timeout_ms = integer(
        "group.max.session.timeout.ms",
        1_800_000,
        update=READ_ONLY,
        doc="Highest session timeout a classic member may ask.",
    )
    group_max_size = integer(
        "group.max.size", INT_MAX, Range(1), update=READ_ONLY, doc="Members per classic group."
    )
    group_min_session_timeout_ms = integer(
        "group.min.session.timeout.ms",
        6000,
        update=READ_ONLY,
        doc="Lowest session timeout a classic member may ask.",
    )
    offset_metadata_max_bytes = integer(
        "offset.metadata.max.bytes",
        4096,
        importance=HIGH,
        update=READ_ONLY,
        doc="Max length of commit metadata.",
    )
    offsets_commit_timeout_ms = integer(
        "offsets.commit.timeout.ms",
        5000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Wait for offset commit replication.",
    )
    offsets_load_buffer_size = integer(
        "offsets.load.buffer.size",
        5_242_880,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Read size when loading groups.",
    )
    offsets_retention_check_interval_ms = long(
        "offsets.retention.check.interval.ms",
        600_000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Period of offset expiry.",
    )
    offsets_retention_minutes = integer(
        "offsets.retention.minutes",
        10_080,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Offset lifetime after group got empty.",
    )
    offsets_topic_compression_codec = integer(
        "offsets.topic.compression.codec",
        0,
        importance=HIGH,
        update=READ_ONLY,
        doc="Codec id for __consumer_offsets writes.",
    )
    offsets_topic_num_partitions = integer(
        "offsets.topic.num.partitions",
        50,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Partitions of __consumer_offsets.",
    )
    offsets_topic_replication_factor = short(
        "offsets.topic.replication.factor", 3, Range(1), importance=HIGH, update=READ_ONLY, doc="Its RF."
    )
    offsets_topic_segment_bytes = integer(
        "offsets.topic.segment.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Its segment size.",
    )
