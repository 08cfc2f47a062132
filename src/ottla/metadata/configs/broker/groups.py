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
        inert=True,
        doc=(
            "How long the group coordinator collects records before it writes them; -1 means while it is "
            "busy."
        ),
    )
    group_coordinator_background_threads = integer(
        "group.coordinator.background.threads",
        2,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="The number of threads for slow work of the group coordinator.",
    )
    group_coordinator_cached_buffer_max_bytes = integer(
        "group.coordinator.cached.buffer.max.bytes",
        1_048_588,
        Range(524_288),
        update=CLUSTER_WIDE,
        inert=True,
        doc="Largest buffer that the group coordinator keeps for reuse.",
    )
    group_coordinator_rebalance_protocols = listing(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        DistinctList(("consumer", "classic", "share", "streams"), may_be_empty=False),
        update=READ_ONLY,
        doc="The supported group protocols. Deprecated: features of the cluster decide that.",
    )
    group_coordinator_threads = integer(
        "group.coordinator.threads",
        4,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="The number of threads that run the group coordinator.",
    )
    group_initial_rebalance_delay_ms = integer(
        "group.initial.rebalance.delay.ms",
        3000,
        update=READ_ONLY,
        doc="How long a new classic group waits for more members before it assigns partitions.",
    )
    group_max_session_timeout_ms = integer(
        "group.max.session.timeout.ms",
        1_800_000,
        update=READ_ONLY,
        doc="Highest session timeout that a member of a classic group may ask for.",
    )
    group_max_size = integer(
        "group.max.size",
        INT_MAX,
        Range(1),
        update=READ_ONLY,
        doc="The maximum number of members of a classic group.",
    )
    group_min_session_timeout_ms = integer(
        "group.min.session.timeout.ms",
        6000,
        update=READ_ONLY,
        doc="Lowest session timeout that a member of a classic group may ask for.",
    )
    offset_metadata_max_bytes = integer(
        "offset.metadata.max.bytes",
        4096,
        importance=HIGH,
        update=READ_ONLY,
        doc="The maximum length of the metadata text of a committed offset.",
    )
    offsets_commit_timeout_ms = integer(
        "offsets.commit.timeout.ms",
        5000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How long an offset commit waits for its replicas.",
    )
    offsets_load_buffer_size = integer(
        "offsets.load.buffer.size",
        5_242_880,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many bytes are read at once when groups are loaded from their topic.",
    )
    offsets_retention_check_interval_ms = long(
        "offsets.retention.check.interval.ms",
        600_000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="How often expired offsets are looked for.",
    )
    offsets_retention_minutes = integer(
        "offsets.retention.minutes",
        10_080,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc=(
            "How long offsets are kept after their group became empty, or after a commit by a consumer "
            "without a group."
        ),
    )
    offsets_topic_compression_codec = integer(
        "offsets.topic.compression.codec",
        0,
        importance=HIGH,
        update=READ_ONLY,
        doc="The compression of records in `__consumer_offsets`, as the number of the codec.",
    )
    offsets_topic_num_partitions = integer(
        "offsets.topic.num.partitions",
        50,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The number of partitions of `__consumer_offsets`. It must not change after the topic is "
        "created.",
    )
    offsets_topic_replication_factor = short(
        "offsets.topic.replication.factor",
        3,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The replication factor of `__consumer_offsets`.",
    )
    offsets_topic_segment_bytes = integer(
        "offsets.topic.segment.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Segment size of `__consumer_offsets`; small segments load and compact faster.",
    )
