"""Broker configs of the log cleaner, which compacts topics."""

from ottla.metadata.configs.declare import ConfigValues, boolean, double, integer, long
from ottla.metadata.configs.kinds import CLUSTER_WIDE, READ_ONLY
from ottla.metadata.configs.rules import Range
from ottla.metadata.configs.values import DOUBLE_MAX, LONG_MAX


class BrokerCleanerConfigs(ConfigValues):
    """Broker configs of the log cleaner, which compacts topics."""

    log_cleaner_backoff_ms = long(
        "log.cleaner.backoff.ms",
        15_000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="How long a cleaner pauses when there is nothing to clean.",
    )
    log_cleaner_dedupe_buffer_size = long(
        "log.cleaner.dedupe.buffer.size",
        134_217_728,
        update=CLUSTER_WIDE,
        doc="Memory for the keys of the logs that are being compacted, shared by all cleaners.",
    )
    log_cleaner_delete_retention_ms = long(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The delete.retention.ms of topics that do not set it.",
    )
    log_cleaner_enable = boolean(
        "log.cleaner.enable",
        True,
        update=READ_ONLY,
        inert=True,
        doc="Whether topics are compacted at all; deprecated.",
    )
    log_cleaner_io_buffer_load_factor = double(
        "log.cleaner.io.buffer.load.factor",
        0.9,
        update=CLUSTER_WIDE,
        inert=True,
        doc="How full a cleaner's table of keys may get, as a fraction.",
    )
    log_cleaner_io_buffer_size = integer(
        "log.cleaner.io.buffer.size",
        524_288,
        Range(0),
        update=CLUSTER_WIDE,
        inert=True,
        doc="Memory for reading and writing, shared by all cleaners.",
    )
    log_cleaner_io_max_bytes_per_second = double(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE_MAX,
        update=CLUSTER_WIDE,
        doc="Bytes per second that all cleaners together may read and write.",
    )
    log_cleaner_max_compaction_lag_ms = long(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        Range(1),
        update=CLUSTER_WIDE,
        doc="The max.compaction.lag.ms of topics that do not set it.",
    )
    log_cleaner_min_cleanable_ratio = double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        Range(0, 1),
        update=CLUSTER_WIDE,
        doc="The min.cleanable.dirty.ratio of topics that do not set it.",
    )
    log_cleaner_min_compaction_lag_ms = long(
        "log.cleaner.min.compaction.lag.ms",
        0,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The min.compaction.lag.ms of topics that do not set it.",
    )
    log_cleaner_threads = integer(
        "log.cleaner.threads",
        1,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The number of cleaners that run in parallel.",
    )
