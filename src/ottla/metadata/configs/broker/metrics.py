"""Broker configs of metrics and client telemetry."""

from ottla.metadata.configs.declare import ConfigValues, integer, listing, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, LOW, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, Range


class BrokerMetricsConfigs(ConfigValues):
    """Broker configs of metrics and client telemetry."""

    kafka_metrics_polling_interval_secs = integer(
        "kafka.metrics.polling.interval.secs",
        10,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="How often the old metrics reporters are called.",
    )
    kafka_metrics_reporters = listing(
        "kafka.metrics.reporters",
        (),
        DistinctList(),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Java classes of the old metrics reporters.",
    )
    metric_reporters = listing(
        "metric.reporters",
        ("org.apache.kafka.common.metrics.JmxReporter",),
        DistinctList(),
        importance=LOW,
        update=CLUSTER_WIDE,
        inert=True,
        doc="Java classes that publish metrics.",
    )
    metrics_num_samples = integer(
        "metrics.num.samples",
        2,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="The number of samples for computing a metric.",
    )
    metrics_recording_level = string(
        "metrics.recording.level",
        "INFO",
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Which metrics are recorded: INFO, DEBUG or TRACE.",
    )
    metrics_sample_window_ms = long(
        "metrics.sample.window.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="The length of one sample of a metric.",
    )
    telemetry_max_bytes = integer(
        "telemetry.max.bytes",
        1_048_576,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="The largest metrics push of a client.",
    )
