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
            "How long the group coordinator gathers records before it writes them; -1 for as long as "
            "it is busy."
        ),
    )
    group_coordinator_background_threads = integer(
        "group.coordinator.background.threads",
        2,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many threads the group coordinator does slow work with.",
    )
    group_coordinator_cached_buffer_max_bytes = integer(
        "group.coordinator.cached.buffer.max.bytes",
        1_048_588,
        Range(524_288),
        update=CLUSTER_WIDE,
        inert=True,
        doc="Largest buffer that the group coordinator keeps for another use.",
    )
    group_coordinator_rebalance_protocols = listing(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        DistinctList(("consumer", "classic", "share", "streams"), may_be_empty=False),
        update=READ_ONLY,
        doc="The group protocols that are served; deprecated, since features of the cluster decide that.",
    )
    group_coordinator_threads = integer(
        "group.coordinator.threads",
        4,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many threads run the group coordinator.",
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
        doc="How many members a classic group may have.",
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
        doc="How long the text may be that comes with a committed offset.",
    )
    offsets_commit_timeout_ms = integer(
        "offsets.commit.timeout.ms",
        5000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How long a commit of offsets waits for its replicas.",
    )
    offsets_load_buffer_size = integer(
        "offsets.load.buffer.size",
        5_242_880,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many bytes are read at a time when groups are loaded from their topic.",
    )
    offsets_retention_check_interval_ms = long(
        "offsets.retention.check.interval.ms",
        600_000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="How often offsets are looked for that have expired.",
    )
    offsets_retention_minutes = integer(
        "offsets.retention.minutes",
        10_080,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc=(
            "How long offsets are kept after their group has become empty, or after a commit without a group."
        ),
    )
    offsets_topic_compression_codec = integer(
        "offsets.topic.compression.codec",
        0,
        importance=HIGH,
        update=READ_ONLY,
        doc="How records of `__consumer_offsets` are compressed, by the codec's number.",
    )
    offsets_topic_num_partitions = integer(
        "offsets.topic.num.partitions",
        50,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="How many partitions `__consumer_offsets` is created with; it must not change later.",
    )
    offsets_topic_replication_factor = short(
        "offsets.topic.replication.factor",
        3,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="How many replicas `__consumer_offsets` is created with.",
    )
    offsets_topic_segment_bytes = integer(
        "offsets.topic.segment.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Segment size of `__consumer_offsets`; small segments load and compact faster.",
    )
