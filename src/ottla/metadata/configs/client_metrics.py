"""Configs of a client metrics subscription (KIP-714): which clients push which metrics how often."""

from ottla.metadata.configs.declare import ConfigValues, integer, listing
from ottla.metadata.configs.rules import DistinctList


class ClientMetricsConfig(ConfigValues):
    """Configs of a client metrics subscription (KIP-714): which clients push which metrics how often."""

    interval_ms = integer("interval.ms", 300_000, doc="How often the clients push their metrics.")
    match = listing(
        "match",
        (),
        DistinctList(),
        doc="Which clients push: NAME=PATTERN pairs that must all match; empty means every client.",
    )
    metrics = listing(
        "metrics",
        (),
        DistinctList(),
        doc="Prefixes of the metrics to push; empty means none, * means all.",
    )
