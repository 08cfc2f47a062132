"""Configs of a topic. What a topic does not set it takes from the broker (see `broker_key`)."""

from ottla.metadata.configs.declare import boolean, double, integer, listing, long, string
from ottla.metadata.configs.ottla import OttlaTopicConfigs
from ottla.metadata.configs.rules import DistinctList, GzipLevel, OneOf, Range, ThrottledReplicas
from ottla.metadata.configs.values import LONG_MAX
from ottla.records.attributes import CODEC_NAMES


class TopicConfig(OttlaTopicConfigs):
    """Configs of a topic. What a topic does not set it takes from the broker."""

    cleanup_policy = listing(
        "cleanup.policy",
        ("delete",),
        DistinctList(("compact", "delete")),
        broker_key="log.cleanup.policy",
        doc=(
            "What happens to old records: delete (by age and size), compact (keep the last record of each "
            "key), both or neither."
        ),
    )
    compression_gzip_level = integer(
        "compression.gzip.level",
        -1,
        GzipLevel(),
        broker_key="compression.gzip.level",
        doc="The compression level for gzip; -1 means the default of gzip.",
    )
    compression_lz4_level = integer(
        "compression.lz4.level",
        9,
        Range(1, 17),
        broker_key="compression.lz4.level",
        doc="The compression level for lz4.",
    )
    compression_type = string(
        "compression.type",
        "producer",
        OneOf(("uncompressed", *reversed(CODEC_NAMES[1:]), "producer")),
        broker_key="compression.type",
        doc="How batches are compressed on disk; `producer` keeps the compression of the producer.",
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        Range(-131_072, 22),
        broker_key="compression.zstd.level",
        doc="The compression level for zstd.",
    )
    delete_retention_ms = long(
        "delete.retention.ms",
        86_400_000,
        Range(0),
        broker_key="log.cleaner.delete.retention.ms",
        doc="How long a tombstone stays in a compacted topic, so that consumers can read it.",
    )
    file_delete_delay_ms = long(
        "file.delete.delay.ms",
        60_000,
        Range(0),
        broker_key="log.segment.delete.delay.ms",
        doc="How long the files of a deleted segment stay on disk for readers that still use them.",
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
        doc="Replicas, as PARTITION:BROKER, whose fetching is throttled; * means all.",
    )
    index_interval_bytes = integer(
        "index.interval.bytes",
        4096,
        Range(0),
        broker_key="log.index.interval.bytes",
        doc="The number of bytes between two index entries.",
    )
    internal_segment_bytes = integer(
        "internal.segment.bytes", None, internal=True, doc="Segment size, for tests that need small segments."
    )
    leader_replication_throttled_replicas = listing(
        "leader.replication.throttled.replicas",
        (),
        ThrottledReplicas(),
        doc="Replicas, as PARTITION:BROKER, whose sending is throttled; * means all.",
    )
    local_retention_bytes = long(
        "local.retention.bytes",
        -2,
        Range(-2),
        broker_key="log.local.retention.bytes",
        inert=True,
        doc="How many bytes of a partition stay local if it uses remote storage; -2 means retention.bytes.",
    )
    local_retention_ms = long(
        "local.retention.ms",
        -2,
        Range(-2),
        broker_key="log.local.retention.ms",
        inert=True,
        doc="How long records stay local if they are in remote storage; -2 means retention.ms.",
    )
    max_compaction_lag_ms = long(
        "max.compaction.lag.ms",
        LONG_MAX,
        Range(1),
        broker_key="log.cleaner.max.compaction.lag.ms",
        doc="The longest time that a record stays uncompacted.",
    )
    max_message_bytes = integer(
        "max.message.bytes",
        1_048_588,
        Range(0),
        broker_key="message.max.bytes",
        doc="The largest batch that is accepted, after compression.",
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
        doc="Which timestamp a record gets: that of its producer (CreateTime) or that of the broker "
        "(LogAppendTime).",
    )
    min_cleanable_dirty_ratio = double(
        "min.cleanable.dirty.ratio",
        0.5,
        Range(0, 1),
        broker_key="log.cleaner.min.cleanable.ratio",
        doc="The fraction of a log that must be new before it is compacted again.",
    )
    min_compaction_lag_ms = long(
        "min.compaction.lag.ms",
        0,
        Range(0),
        broker_key="log.cleaner.min.compaction.lag.ms",
        doc="The shortest time that a record stays uncompacted.",
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
        doc="Copy no more segments to remote storage, but read those that are there.",
    )
    remote_log_delete_on_disable = boolean(
        "remote.log.delete.on.disable",
        False,
        inert=True,
        doc="Delete the records in remote storage when remote.storage.enable is set to false.",
    )
    remote_storage_enable = boolean(
        "remote.storage.enable", False, inert=True, doc="Copy old segments to remote storage."
    )
    retention_bytes = long(
        "retention.bytes",
        -1,
        broker_key="log.retention.bytes",
        doc="The size of a partition above which its oldest segments are deleted; -1 means no limit.",
    )
    retention_ms = long(
        "retention.ms",
        604_800_000,
        Range(-1),
        broker_key="log.retention.ms",
        doc="The age at which records are deleted; -1 means no limit.",
    )
    segment_bytes = integer(
        "segment.bytes",
        1_073_741_824,
        Range(1_048_576),
        broker_key="log.segment.bytes",
        doc="The size of a segment file at which the next one is started.",
    )
    segment_index_bytes = integer(
        "segment.index.bytes",
        10_485_760,
        Range(4),
        broker_key="log.index.size.max.bytes",
        doc="The size of an index file at which the next segment is started.",
    )
    segment_jitter_ms = long(
        "segment.jitter.ms",
        0,
        Range(0),
        broker_key="log.roll.jitter.ms",
        doc="The longest time by which segment.ms is shortened at random, so that not all segments end at "
        "once.",
    )
    segment_ms = long(
        "segment.ms",
        604_800_000,
        Range(1),
        broker_key="log.roll.ms",
        doc="The age of a segment at which the next one is started.",
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        broker_key="unclean.leader.election.enable",
        inert=True,
        doc="Let a replica that may lack records become the leader if no other is left. Records can be lost.",
    )
