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
        doc="How hard to compress with gzip where compression.type asks for it; -1 is its own default.",
    )
    compression_lz4_level = integer(
        "compression.lz4.level",
        9,
        Range(1, 17),
        update=CLUSTER_WIDE,
        doc="How hard to compress with lz4 where compression.type asks for it.",
    )
    compression_type = string(
        "compression.type",
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="How batches are compressed on disk; `producer` keeps them as they came.",
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        Range(-131_072, 22),
        update=CLUSTER_WIDE,
        doc="How hard to compress with zstd where compression.type asks for it.",
    )
    cordoned_log_dirs = listing(
        "cordoned.log.dirs",
        (),
        DistinctList(may_be_null=True),
        update=PER_BROKER,
        doc="Data directories that get no new replicas; * stands for all.",
    )
    log_cleanup_policy = listing(
        "log.cleanup.policy",
        ("delete",),
        DistinctList(("compact", "delete")),
        update=CLUSTER_WIDE,
        doc="The cleanup.policy of topics that set none.",
    )
    log_dir = listing(
        "log.dir",
        ("/tmp/kafka-logs",),  # noqa: S108  (the default is Kafka's)
        DistinctList(may_be_empty=False),
        importance=HIGH,
        update=READ_ONLY,
        doc="The data directory, if log.dirs names none.",
    )
    log_dir_failure_timeout_ms = long(
        "log.dir.failure.timeout.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Stop if the controller cannot be told about a broken directory for so long.",
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
        doc="The flush.messages of topics that set none.",
    )
    log_flush_interval_ms = long(
        "log.flush.interval.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The flush.ms of topics that set none; if unset, log.flush.scheduler.interval.ms.",
    )
    log_flush_offset_checkpoint_interval_ms = integer(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="How often it is written down up to where logs are on disk, which is where recovery starts.",
    )
    log_flush_scheduler_interval_ms = long(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        importance=HIGH,
        update=READ_ONLY,
        doc="How often logs are looked for that are due for a sync.",
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="How often it is written down where logs begin.",
    )
    log_index_interval_bytes = integer(
        "log.index.interval.bytes",
        4096,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The index.interval.bytes of topics that set none.",
    )
    log_index_size_max_bytes = integer(
        "log.index.size.max.bytes",
        10_485_760,
        Range(4),
        update=CLUSTER_WIDE,
        doc="The segment.index.bytes of topics that set none.",
    )
    log_initial_task_delay_ms = long(
        "log.initial.task.delay.ms",
        30_000,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="How long after the start the housekeeping of logs begins.",
    )
    log_message_timestamp_after_max_ms = long(
        "log.message.timestamp.after.max.ms",
        3_600_000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The message.timestamp.after.max.ms of topics that set none.",
    )
    log_message_timestamp_before_max_ms = long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The message.timestamp.before.max.ms of topics that set none.",
    )
    log_message_timestamp_type = string(
        "log.message.timestamp.type",
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        update=CLUSTER_WIDE,
        doc="The message.timestamp.type of topics that set none.",
    )
    log_preallocate = boolean(
        "log.preallocate", False, update=CLUSTER_WIDE, doc="The preallocate of topics that set none."
    )
    log_retention_bytes = long(
        "log.retention.bytes",
        -1,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The retention.bytes of topics that set none.",
    )
    log_retention_check_interval_ms = long(
        "log.retention.check.interval.ms",
        300_000,
        Range(1),
        update=READ_ONLY,
        doc="How often segments are looked for that can be deleted.",
    )
    log_retention_hours = integer(
        "log.retention.hours",
        168,
        importance=HIGH,
        update=READ_ONLY,
        doc=(
            "The retention of topics that set none, in hours; log.retention.minutes and "
            "log.retention.ms go before it."
        ),
    )
    log_retention_minutes = integer(
        "log.retention.minutes",
        None,
        importance=HIGH,
        update=READ_ONLY,
        doc="The retention of topics that set none, in minutes; log.retention.ms goes before it.",
    )
    log_retention_ms = long(
        "log.retention.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The retention.ms of topics that set none; -1 keeps records for ever.",
    )
    log_roll_hours = integer(
        "log.roll.hours",
        168,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The segment.ms of topics that set none, in hours; log.roll.ms goes before it.",
    )
    log_roll_jitter_hours = integer(
        "log.roll.jitter.hours",
        0,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="The segment.jitter.ms of topics that set none, in hours; log.roll.jitter.ms goes before it.",
    )
    log_roll_jitter_ms = long(
        "log.roll.jitter.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The segment.jitter.ms of topics that set none.",
    )
    log_roll_ms = long(
        "log.roll.ms",
        None,
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The segment.ms of topics that set none.",
    )
    log_segment_bytes = integer(
        "log.segment.bytes",
        1_073_741_824,
        Range(1_048_576),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The segment.bytes of topics that set none.",
    )
    log_segment_delete_delay_ms = long(
        "log.segment.delete.delay.ms",
        60_000,
        Range(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The file.delete.delay.ms of topics that set none.",
    )
    message_max_bytes = integer(
        "message.max.bytes",
        1_048_588,
        Range(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The max.message.bytes of topics that set none.",
    )
    num_recovery_threads_per_data_dir = integer(
        "num.recovery.threads.per.data.dir",
        2,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        inert=True,
        doc="How many threads check the logs of a directory after a crash, and close them at the end.",
    )
