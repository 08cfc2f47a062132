"""Configs of a client metrics subscription (KIP-714): which clients push which metrics how often."""

from ottla.metadata.configs.declare import ConfigValues, integer, listing
from ottla.metadata.configs.rules import DistinctList


class ClientMetricsConfig(ConfigValues):
    """Configs of a client metrics subscription (KIP-714): which clients push which metrics how often."""

    interval_ms = integer("interval.ms", 300_000, doc="Client telemetry push interval.")
    match = listing("match", (), DistinctList(), doc="Client selectors for telemetry.")
    metrics = listing("metrics", (), DistinctList(), doc="Metric name prefixes to push.")
