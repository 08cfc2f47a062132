"""Broker configs of the log cleaner, which compacts topics."""

from ottla.metadata.configs.declare import ConfigValues, boolean, double, integer, long
from ottla.metadata.configs.kinds import CLUSTER_WIDE, READ_ONLY
from ottla.metadata.configs.rules import Range
from ottla.metadata.configs.values import DOUBLE_MAX, LONG_MAX


class BrokerCleanerConfigs(ConfigValues):
    """Broker configs of the log cleaner, which compacts topics."""

    log_cleaner_backoff_ms = long(
        "log.cleaner.backoff.ms", 15_000, Range(0), update=CLUSTER_WIDE, doc="Sleep of an idle cleaner."
    )
    log_cleaner_dedupe_buffer_size = long(
        "log.cleaner.dedupe.buffer.size",
        134_217_728,
        update=CLUSTER_WIDE,
        doc="Memory for key maps, all threads.",
    )
    log_cleaner_delete_retention_ms = long(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        Range(0),
        update=CLUSTER_WIDE,
        doc="Default delete.retention.ms: how long tombstones stay.",
    )
    log_cleaner_enable = boolean(
        "log.cleaner.enable", True, update=READ_ONLY, doc="Run the cleaner (deprecated switch)."
    )
    log_cleaner_io_buffer_load_factor = double(
        "log.cleaner.io.buffer.load.factor", 0.9, update=CLUSTER_WIDE, doc="Fill grade of the key map."
    )
    log_cleaner_io_buffer_size = integer(
        "log.cleaner.io.buffer.size", 524_288, Range(0), update=CLUSTER_WIDE, doc="Cleaner IO buffers."
    )
    log_cleaner_io_max_bytes_per_second = double(
        "log.cleaner.io.max.bytes.per.second", DOUBLE_MAX, update=CLUSTER_WIDE, doc="Cleaner IO throttle."
    )
    log_cleaner_max_compaction_lag_ms = long(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        Range(1),
        update=CLUSTER_WIDE,
        doc="Default max.compaction.lag.ms.",
    )
    log_cleaner_min_cleanable_ratio = double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        Range(0, 1),
        update=CLUSTER_WIDE,
        doc="Default min.cleanable.dirty.ratio.",
    )
    log_cleaner_min_compaction_lag_ms = long(
        "log.cleaner.min.compaction.lag.ms",
        0,
        Range(0),
        update=CLUSTER_WIDE,
        doc="Default min.compaction.lag.ms.",
    )
    log_cleaner_threads = integer(
        "log.cleaner.threads", 1, Range(0), update=CLUSTER_WIDE, doc="Cleaner threads."
    )
