"""Broker configs of logs: directories, segments, flushing, retention. Most are defaults for topics."""

from ottla.metadata.configs.declare import ConfigValues, boolean, integer, listing, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, GzipLevel, OneOf, Range
from ottla.metadata.configs.values import LONG_MAX
from ottla.records.attributes import CODEC_NAMES


class BrokerLogConfigs(ConfigValues):
    """Broker configs of logs: directories, segments, flushing, retention. Most are defaults for topics."""

    compression_gzip_level = integer(
        "compression.gzip.level",
        -1,
        GzipLevel(),
        update=CLUSTER_WIDE,
        doc="The compression level for gzip; -1 means the default of gzip.",
    )
    compression_lz4_level = integer(
        "compression.lz4.level",
        9,
        Range(1, 17),
        update=CLUSTER_WIDE,
        doc="The compression level for lz4.",
    )
    compression_type = string(
        "compression.type",
        "producer",
        OneOf(("uncompressed", *reversed(CODEC_NAMES[1:]), "producer")),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="How batches are compressed on disk; `producer` keeps the compression of the producer.",
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        Range(-131_072, 22),
        update=CLUSTER_WIDE,
        doc="The compression level for zstd.",
    )
    cordoned_log_dirs = listing(
        "cordoned.log.dirs",
        (),
        DistinctList(may_be_null=True),
        update=PER_BROKER,
        doc="Data directories that get no new replicas; * means all.",
    )
    log_cleanup_policy = listing(
        "log.cleanup.policy",
        ("delete",),
        DistinctList(("compact", "delete")),
        update=CLUSTER_WIDE,
        doc="The cleanup.policy of topics that do not set it.",
    )
    log_dir = listing(
        "log.dir",
        ("/tmp/kafka-logs",),  # noqa: S108  (the default is Kafka's)
        DistinctList(may_be_empty=False),
        importance=HIGH,
        update=READ_ONLY,
        doc="The data directory, if log.dirs is not set.",
    )
    log_dir_failure_timeout_ms = long(
        "log.dir.failure.timeout.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="The node stops if it cannot report a failed directory to the controller for this long.",
    )
    log_dirs = listing(
        "log.dirs",
        None,
        DistinctList(may_be_empty=False, may_be_null=True),
        importance=HIGH,
        update=READ_ONLY,
        doc="The data directories.",
    )
    log_flush_interval_messages = long(
        "log.flush.interval.messages",
        LONG_MAX,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The flush.messages of topics that do not set it.",
    )
    log_flush_interval_ms = long(
        "log.flush.interval.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The flush.ms of topics that do not set it; if unset, log.flush.scheduler.interval.ms.",
    )
    log_flush_offset_checkpoint_interval_ms = integer(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="How often the recovery points are written. Recovery after a crash starts there.",
    )
    log_flush_scheduler_interval_ms = long(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        importance=HIGH,
        update=READ_ONLY,
        doc="How often logs are checked for flush.ms.",
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="How often the log start offsets are written.",
    )
    log_index_interval_bytes = integer(
        "log.index.interval.bytes",
        4096,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The index.interval.bytes of topics that do not set it.",
    )
    log_index_size_max_bytes = integer(
        "log.index.size.max.bytes",
        10_485_760,
        Range(4),
        update=CLUSTER_WIDE,
        doc="The segment.index.bytes of topics that do not set it.",
    )
    log_initial_task_delay_ms = long(
        "log.initial.task.delay.ms",
        30_000,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="How long after the start of the node the first log maintenance runs.",
    )
    log_message_timestamp_after_max_ms = long(
        "log.message.timestamp.after.max.ms",
        3_600_000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The message.timestamp.after.max.ms of topics that do not set it.",
    )
    log_message_timestamp_before_max_ms = long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The message.timestamp.before.max.ms of topics that do not set it.",
    )
    log_message_timestamp_type = string(
        "log.message.timestamp.type",
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        update=CLUSTER_WIDE,
        doc="The message.timestamp.type of topics that do not set it.",
    )
    log_preallocate = boolean(
        "log.preallocate", False, update=CLUSTER_WIDE, doc="The preallocate of topics that do not set it."
    )
    log_retention_bytes = long(
        "log.retention.bytes",
        -1,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The retention.bytes of topics that do not set it.",
    )
    log_retention_check_interval_ms = long(
        "log.retention.check.interval.ms",
        300_000,
        Range(1),
        update=READ_ONLY,
        doc="How often segments to delete are looked for.",
    )
    log_retention_hours = integer(
        "log.retention.hours",
        168,
        importance=HIGH,
        update=READ_ONLY,
        doc=(
            "The retention time of topics that do not set it, in hours; log.retention.minutes and "
            "log.retention.ms take precedence."
        ),
    )
    log_retention_minutes = integer(
        "log.retention.minutes",
        None,
        importance=HIGH,
        update=READ_ONLY,
        doc="The retention time of topics that do not set it, in minutes; log.retention.ms takes precedence.",
    )
    log_retention_ms = long(
        "log.retention.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The retention.ms of topics that do not set it; -1 keeps records forever.",
    )
    log_roll_hours = integer(
        "log.roll.hours",
        168,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The segment.ms of topics that do not set it, in hours; log.roll.ms takes precedence.",
    )
    log_roll_jitter_hours = integer(
        "log.roll.jitter.hours",
        0,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="The segment.jitter.ms of topics that do not set it, in hours; log.roll.jitter.ms takes "
        "precedence.",
    )
    log_roll_jitter_ms = long(
        "log.roll.jitter.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The segment.jitter.ms of topics that do not set it.",
    )
    log_roll_ms = long(
        "log.roll.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The segment.ms of topics that do not set it.",
    )
    log_segment_bytes = integer(
        "log.segment.bytes",
        1_073_741_824,
        Range(1_048_576),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The segment.bytes of topics that do not set it.",
    )
    log_segment_delete_delay_ms = long(
        "log.segment.delete.delay.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The file.delete.delay.ms of topics that do not set it.",
    )
    message_max_bytes = integer(
        "message.max.bytes",
        1_048_588,
        Range(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The max.message.bytes of topics that do not set it.",
    )
    num_recovery_threads_per_data_dir = integer(
        "num.recovery.threads.per.data.dir",
        2,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads for each directory that recover logs at the start and close them at the "
        "end.",
    )
