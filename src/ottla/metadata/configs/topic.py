"""Configs of a topic. What a topic does not set it takes from the broker (`broker_key`)."""

from ottla.metadata.configs.declare import ConfigValues, boolean, double, integer, listing, long, string
from ottla.metadata.configs.rules import DistinctList, GzipLevel, OneOf, Range, ThrottledReplicas
from ottla.metadata.configs.values import LONG_MAX


class TopicConfig(ConfigValues):
    """Configs of a topic. What a topic does not set it takes from the broker (`broker_key`)."""

    cleanup_policy = listing(
        "cleanup.policy",
        ("delete",),
        DistinctList(("compact", "delete")),
        broker_key="log.cleanup.policy",
        doc="Delete and/or compact (may be empty with tiering).",
    )
    compression_gzip_level = integer(
        "compression.gzip.level",
        -1,
        GzipLevel(),
        broker_key="compression.gzip.level",
        doc="Level when the broker recompresses with gzip.",
    )
    compression_lz4_level = integer(
        "compression.lz4.level",
        9,
        Range(1, 17),
        broker_key="compression.lz4.level",
        doc="Level for lz4 recompression.",
    )
    compression_type = string(
        "compression.type",
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        broker_key="compression.type",
        doc="Codec stored on disk; producer = keep as sent.",
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        Range(-131_072, 22),
        broker_key="compression.zstd.level",
        doc="Level for zstd recompression.",
    )
    delete_retention_ms = long(
        "delete.retention.ms",
        86_400_000,
        Range(0),
        broker_key="log.cleaner.delete.retention.ms",
        doc="Tombstones and markers stay at least this long.",
    )
    file_delete_delay_ms = long(
        "file.delete.delay.ms",
        60_000,
        Range(0),
        broker_key="log.segment.delete.delay.ms",
        doc="Delay before renamed files are unlinked.",
    )
    flush_messages = long(
        "flush.messages",
        LONG_MAX,
        Range(1),
        broker_key="log.flush.interval.messages",
        doc="Fsync after this many records.",
    )
    flush_ms = long(
        "flush.ms", LONG_MAX, Range(0), broker_key="log.flush.interval.ms", doc="Fsync at least this often."
    )
    follower_replication_throttled_replicas = listing(
        "follower.replication.throttled.replicas",
        (),
        ThrottledReplicas(),
        doc="Partition:broker list throttled on followers; * all.",
    )
    index_interval_bytes = integer(
        "index.interval.bytes",
        4096,
        Range(0),
        broker_key="log.index.interval.bytes",
        doc="Bytes between index entries.",
    )
    internal_segment_bytes = integer(
        "internal.segment.bytes",
        None,
        internal=True,
        doc="Internal: tiny segments for tests (accepted in CreateTopics).",
    )
    leader_replication_throttled_replicas = listing(
        "leader.replication.throttled.replicas",
        (),
        ThrottledReplicas(),
        doc="Partition:broker list throttled on leaders; * all.",
    )
    local_retention_bytes = long(
        "local.retention.bytes",
        -2,
        Range(-2),
        broker_key="log.local.retention.bytes",
        doc="Local size limit with tiering; -2 = retention.bytes.",
    )
    local_retention_ms = long(
        "local.retention.ms",
        -2,
        Range(-2),
        broker_key="log.local.retention.ms",
        doc="Local age limit with tiering; -2 = retention.ms.",
    )
    max_compaction_lag_ms = long(
        "max.compaction.lag.ms",
        LONG_MAX,
        Range(1),
        broker_key="log.cleaner.max.compaction.lag.ms",
        doc="Compact at latest after this age.",
    )
    max_message_bytes = integer(
        "max.message.bytes",
        1_048_588,
        Range(0),
        broker_key="message.max.bytes",
        doc="Largest batch accepted.",
    )
    message_timestamp_after_max_ms = long(
        "message.timestamp.after.max.ms",
        3_600_000,
        Range(0),
        broker_key="log.message.timestamp.after.max.ms",
        doc="Tolerance for future timestamps.",
    )
    message_timestamp_before_max_ms = long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        Range(0),
        broker_key="log.message.timestamp.before.max.ms",
        doc="Tolerance for past timestamps.",
    )
    message_timestamp_type = string(
        "message.timestamp.type",
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        broker_key="log.message.timestamp.type",
        doc="Who sets timestamps.",
    )
    min_cleanable_dirty_ratio = double(
        "min.cleanable.dirty.ratio",
        0.5,
        Range(0, 1),
        broker_key="log.cleaner.min.cleanable.ratio",
        doc="Dirty share that triggers compaction.",
    )
    min_compaction_lag_ms = long(
        "min.compaction.lag.ms",
        0,
        Range(0),
        broker_key="log.cleaner.min.compaction.lag.ms",
        doc="Records younger than this are not compacted.",
    )
    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        Range(1),
        broker_key="min.insync.replicas",
        doc="ISR size needed for acks=all.",
    )
    preallocate = boolean(
        "preallocate", False, broker_key="log.preallocate", doc="Allocate segment files up front."
    )
    remote_log_copy_disable = boolean("remote.log.copy.disable", False, doc="Stop tiering new segments.")
    remote_log_delete_on_disable = boolean(
        "remote.log.delete.on.disable", False, doc="Drop tiered data when tiering is switched off."
    )
    remote_storage_enable = boolean("remote.storage.enable", False, doc="Tier this topic.")
    retention_bytes = long(
        "retention.bytes", -1, broker_key="log.retention.bytes", doc="Size limit per partition; -1 none."
    )
    retention_ms = long(
        "retention.ms", 604_800_000, Range(-1), broker_key="log.retention.ms", doc="Age limit; -1 none."
    )
    segment_bytes = integer(
        "segment.bytes",
        1_073_741_824,
        Range(1_048_576),
        broker_key="log.segment.bytes",
        doc="Segment size (min 1 MiB in 4.3).",
    )
    segment_index_bytes = integer(
        "segment.index.bytes",
        10_485_760,
        Range(4),
        broker_key="log.index.size.max.bytes",
        doc="Index preallocation size.",
    )
    segment_jitter_ms = long(
        "segment.jitter.ms",
        0,
        Range(0),
        broker_key="log.roll.jitter.ms",
        doc="Random reduction of segment.ms.",
    )
    segment_ms = long(
        "segment.ms", 604_800_000, Range(1), broker_key="log.roll.ms", doc="Segment age that forces a roll."
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        broker_key="unclean.leader.election.enable",
        doc="Allow a non in-sync leader.",
    )
