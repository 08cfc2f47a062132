"""Configs of a topic. What a topic does not set it takes from the broker (see `broker_key`)."""

from ottla.metadata.configs.declare import boolean, double, integer, listing, long, string
from ottla.metadata.configs.ottla import OttlaTopicConfigs
from ottla.metadata.configs.rules import DistinctList, GzipLevel, OneOf, Range, ThrottledReplicas
from ottla.metadata.configs.values import LONG_MAX


class TopicConfig(OttlaTopicConfigs):
    """Configs of a topic. What a topic does not set it takes from the broker."""

    cleanup_policy = listing(
        "cleanup.policy",
        ("delete",),
        DistinctList(("compact", "delete")),
        broker_key="log.cleanup.policy",
        doc=(
            "What becomes of old records: delete (by age and size), compact (the last one of each key "
            "stays), both or neither."
        ),
    )
    compression_gzip_level = integer(
        "compression.gzip.level",
        -1,
        GzipLevel(),
        broker_key="compression.gzip.level",
        doc="How hard to compress with gzip where compression.type asks for it; -1 is its own default.",
    )
    compression_lz4_level = integer(
        "compression.lz4.level",
        9,
        Range(1, 17),
        broker_key="compression.lz4.level",
        doc="How hard to compress with lz4 where compression.type asks for it.",
    )
    compression_type = string(
        "compression.type",
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        broker_key="compression.type",
        doc="How batches are compressed on disk; `producer` keeps them as they came.",
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        Range(-131_072, 22),
        broker_key="compression.zstd.level",
        doc="How hard to compress with zstd where compression.type asks for it.",
    )
    delete_retention_ms = long(
        "delete.retention.ms",
        86_400_000,
        Range(0),
        broker_key="log.cleaner.delete.retention.ms",
        doc="How long the mark of a deleted key stays in a compacted topic, so that readers can see it.",
    )
    file_delete_delay_ms = long(
        "file.delete.delay.ms",
        60_000,
        Range(0),
        broker_key="log.segment.delete.delay.ms",
        doc="How long a deleted segment's files stay on disk, for readers that still use them.",
    )
    flush_messages = long(
        "flush.messages",
        LONG_MAX,
        Range(1),
        broker_key="log.flush.interval.messages",
        doc="Sync a log after this many records.",
    )
    flush_ms = long(
        "flush.ms",
        LONG_MAX,
        Range(0),
        broker_key="log.flush.interval.ms",
        doc="Sync a log when its oldest unsynced record has waited this long.",
    )
    follower_replication_throttled_replicas = listing(
        "follower.replication.throttled.replicas",
        (),
        ThrottledReplicas(),
        inert=True,
        doc="Replicas, as PARTITION:BROKER, whose fetching is throttled; * for all.",
    )
    index_interval_bytes = integer(
        "index.interval.bytes",
        4096,
        Range(0),
        broker_key="log.index.interval.bytes",
        doc="How many bytes of records lie between two index entries.",
    )
    internal_segment_bytes = integer(
        "internal.segment.bytes", None, internal=True, doc="Segment size, as small as a test wants it."
    )
    leader_replication_throttled_replicas = listing(
        "leader.replication.throttled.replicas",
        (),
        ThrottledReplicas(),
        inert=True,
        doc="Replicas, as PARTITION:BROKER, whose sending is throttled; * for all.",
    )
    local_retention_bytes = long(
        "local.retention.bytes",
        -2,
        Range(-2),
        broker_key="log.local.retention.bytes",
        inert=True,
        doc="How many bytes of a partition stay local when it is in remote storage; -2 for retention.bytes.",
    )
    local_retention_ms = long(
        "local.retention.ms",
        -2,
        Range(-2),
        broker_key="log.local.retention.ms",
        inert=True,
        doc="How long records stay local when they are in remote storage; -2 for retention.ms.",
    )
    max_compaction_lag_ms = long(
        "max.compaction.lag.ms",
        LONG_MAX,
        Range(1),
        broker_key="log.cleaner.max.compaction.lag.ms",
        doc="How long a record may stay uncompacted at most.",
    )
    max_message_bytes = integer(
        "max.message.bytes",
        1_048_588,
        Range(0),
        broker_key="message.max.bytes",
        doc="Largest batch that is accepted, as it is compressed.",
    )
    message_timestamp_after_max_ms = long(
        "message.timestamp.after.max.ms",
        3_600_000,
        Range(0),
        broker_key="log.message.timestamp.after.max.ms",
        doc="How far in the future a record's timestamp may be.",
    )
    message_timestamp_before_max_ms = long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        Range(0),
        broker_key="log.message.timestamp.before.max.ms",
        doc="How far in the past a record's timestamp may be.",
    )
    message_timestamp_type = string(
        "message.timestamp.type",
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        broker_key="log.message.timestamp.type",
        doc="Whose time a record has: its producer's (CreateTime) or the broker's (LogAppendTime).",
    )
    min_cleanable_dirty_ratio = double(
        "min.cleanable.dirty.ratio",
        0.5,
        Range(0, 1),
        broker_key="log.cleaner.min.cleanable.ratio",
        doc="Which share of a log must be new before it is compacted again.",
    )
    min_compaction_lag_ms = long(
        "min.compaction.lag.ms",
        0,
        Range(0),
        broker_key="log.cleaner.min.compaction.lag.ms",
        doc="How long a record stays uncompacted at least.",
    )
    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        Range(1),
        broker_key="min.insync.replicas",
        doc="How many replicas must have a record before a write with acks=all succeeds.",
    )
    preallocate = boolean(
        "preallocate",
        False,
        broker_key="log.preallocate",
        doc="Reserve the whole space of a segment when it is created.",
    )
    remote_log_copy_disable = boolean(
        "remote.log.copy.disable",
        False,
        inert=True,
        doc="Copy no more segments to remote storage, and read what is there.",
    )
    remote_log_delete_on_disable = boolean(
        "remote.log.delete.on.disable",
        False,
        inert=True,
        doc="Delete what is in remote storage when remote.storage.enable is switched off.",
    )
    remote_storage_enable = boolean(
        "remote.storage.enable", False, inert=True, doc="Copy old segments to remote storage."
    )
    retention_bytes = long(
        "retention.bytes",
        -1,
        broker_key="log.retention.bytes",
        doc="How large a partition may grow before its oldest segments are deleted; -1 for no limit.",
    )
    retention_ms = long(
        "retention.ms",
        604_800_000,
        Range(-1),
        broker_key="log.retention.ms",
        doc="How old records may grow before they are deleted; -1 for no limit.",
    )
    segment_bytes = integer(
        "segment.bytes",
        1_073_741_824,
        Range(1_048_576),
        broker_key="log.segment.bytes",
        doc="How large a segment file may grow before the next one is begun.",
    )
    segment_index_bytes = integer(
        "segment.index.bytes",
        10_485_760,
        Range(4),
        broker_key="log.index.size.max.bytes",
        doc="How large an index file may grow before the next segment is begun.",
    )
    segment_jitter_ms = long(
        "segment.jitter.ms",
        0,
        Range(0),
        broker_key="log.roll.jitter.ms",
        doc="By how much segment.ms is shortened at random, so that segments do not all end at once.",
    )
    segment_ms = long(
        "segment.ms",
        604_800_000,
        Range(1),
        broker_key="log.roll.ms",
        doc="How old a segment may grow before the next one is begun.",
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        broker_key="unclean.leader.election.enable",
        inert=True,
        doc="Let a replica lead that may lack records, if no other is left; records can be lost.",
    )
