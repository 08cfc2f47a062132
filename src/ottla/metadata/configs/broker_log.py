"""Broker configs of logs: directories, segments, flushing, retention. Most are defaults for topics."""

from ottla.metadata.configs.declare import ConfigValues, boolean, integer, listing, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, GzipLevel, OneOf, Range
from ottla.metadata.configs.values import LONG_MAX


class BrokerLogConfigs(ConfigValues):
    """Broker configs of logs: directories, segments, flushing, retention. Most are defaults for topics."""

    compression_gzip_level = integer(
        "compression.gzip.level",
        -1,
        GzipLevel(),
        update=CLUSTER_WIDE,
        doc="Level when the broker recompresses with gzip.",
    )
    compression_lz4_level = integer(
        "compression.lz4.level", 9, Range(1, 17), update=CLUSTER_WIDE, doc="Level for lz4 recompression."
    )
    compression_type = string(
        "compression.type",
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Codec stored on disk; producer = keep as sent.",
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        Range(-131_072, 22),
        update=CLUSTER_WIDE,
        doc="Level for zstd recompression.",
    )
    cordoned_log_dirs = listing(
        "cordoned.log.dirs",
        (),
        DistinctList(may_be_null=True),
        update=PER_BROKER,
        doc="Directories that get no new replicas (new in 4.3); * = all.",
    )
    log_cleanup_policy = listing(
        "log.cleanup.policy",
        ("delete",),
        DistinctList(("compact", "delete")),
        update=CLUSTER_WIDE,
        doc="Default cleanup.policy.",
    )
    log_dir = listing(
        "log.dir",
        ("/tmp/kafka-logs",),  # noqa: S108  (the default is Kafka's)
        DistinctList(may_be_empty=False),
        importance=HIGH,
        update=READ_ONLY,
        doc="Single data directory, used if log.dirs missing.",
    )
    log_dir_failure_timeout_ms = long(
        "log.dir.failure.timeout.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="Stop if a dead directory cannot be reported in time.",
    )
    log_dirs = listing(
        "log.dirs",
        None,
        DistinctList(may_be_empty=False, may_be_null=True),
        importance=HIGH,
        update=READ_ONLY,
        doc="Data directories.",
    )
    log_flush_interval_messages = long(
        "log.flush.interval.messages",
        LONG_MAX,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Default flush.messages.",
    )
    log_flush_interval_ms = long(
        "log.flush.interval.ms", None, importance=HIGH, update=CLUSTER_WIDE, doc="Default flush.ms."
    )
    log_flush_offset_checkpoint_interval_ms = integer(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Period of recovery-point checkpoint.",
    )
    log_flush_scheduler_interval_ms = long(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        importance=HIGH,
        update=READ_ONLY,
        doc="Period of the flush check.",
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Period of log-start-offset checkpoint.",
    )
    log_index_interval_bytes = integer(
        "log.index.interval.bytes", 4096, Range(0), update=CLUSTER_WIDE, doc="Default index.interval.bytes."
    )
    log_index_size_max_bytes = integer(
        "log.index.size.max.bytes",
        10_485_760,
        Range(4),
        update=CLUSTER_WIDE,
        doc="Default segment.index.bytes.",
    )
    log_initial_task_delay_ms = long(
        "log.initial.task.delay.ms",
        30_000,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Internal: first run of log background tasks.",
    )
    log_message_timestamp_after_max_ms = long(
        "log.message.timestamp.after.max.ms",
        3_600_000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="How far in the future CreateTime may be.",
    )
    log_message_timestamp_before_max_ms = long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        Range(0),
        update=CLUSTER_WIDE,
        doc="How far in the past CreateTime may be.",
    )
    log_message_timestamp_type = string(
        "log.message.timestamp.type",
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        update=CLUSTER_WIDE,
        doc="CreateTime or LogAppendTime.",
    )
    log_preallocate = boolean(
        "log.preallocate", False, update=CLUSTER_WIDE, doc="Allocate segment files up front."
    )
    log_retention_bytes = long(
        "log.retention.bytes", -1, importance=HIGH, update=CLUSTER_WIDE, doc="Default retention.bytes."
    )
    log_retention_check_interval_ms = long(
        "log.retention.check.interval.ms",
        300_000,
        Range(1),
        update=READ_ONLY,
        doc="Period of retention check.",
    )
    log_retention_hours = integer(
        "log.retention.hours",
        168,
        importance=HIGH,
        update=READ_ONLY,
        doc="Retention in hours, lowest priority.",
    )
    log_retention_minutes = integer(
        "log.retention.minutes", None, importance=HIGH, update=READ_ONLY, doc="Retention in minutes."
    )
    log_retention_ms = long(
        "log.retention.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Retention in ms, highest priority.",
    )
    log_roll_hours = integer(
        "log.roll.hours", 168, Range(1), importance=HIGH, update=READ_ONLY, doc="Segment.ms in hours."
    )
    log_roll_jitter_hours = integer(
        "log.roll.jitter.hours",
        0,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Segment.jitter.ms in hours.",
    )
    log_roll_jitter_ms = long(
        "log.roll.jitter.ms", None, importance=HIGH, update=CLUSTER_WIDE, doc="Default segment.jitter.ms."
    )
    log_roll_ms = long("log.roll.ms", None, importance=HIGH, update=CLUSTER_WIDE, doc="Default segment.ms.")
    log_segment_bytes = integer(
        "log.segment.bytes",
        1_073_741_824,
        Range(1_048_576),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Default segment.bytes (min 1 MiB).",
    )
    log_segment_delete_delay_ms = long(
        "log.segment.delete.delay.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Default file.delete.delay.ms.",
    )
    message_max_bytes = integer(
        "message.max.bytes",
        1_048_588,
        Range(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Default max.message.bytes (batch incl. overhead).",
    )
    num_recovery_threads_per_data_dir = integer(
        "num.recovery.threads.per.data.dir",
        2,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Threads loading logs at start/stop.",
    )
