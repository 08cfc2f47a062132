"""What clients have pushed, for Prometheus."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ottla.broker.telemetry.telemetry import Telemetry

SERIES_MAX: Final = 5_000
"""How many series of clients a scrape has."""
_LABELS: Final = ("client_id", "client_instance_id", "software", "metric", "attributes")


def client_metrics(telemetry: Telemetry) -> Iterator[Metric]:
    """Give the metrics of clients. It runs in a thread of its own, so it goes through copies."""
    instances = list(telemetry.instances.values())
    pushed = GaugeMetricFamily(
        "ottla_client_metric", "A metric that a client has pushed (KIP-714).", labels=_LABELS
    )
    shown, left_out = 0, sum(instance.left_out for instance in instances)
    for instance in instances:
        who = instance.identity
        software = f"{who.software_name} {who.software_version}"
        for (name, attributes), value in list(instance.series.items()):
            if shown == SERIES_MAX:
                left_out += 1
                continue
            shown += 1
            told = ",".join(f"{key}={text}" for key, text in attributes)
            pushed.add_metric((who.client_id or "", str(instance.instance_id), software, name, told), value)
    yield pushed
    yield GaugeMetricFamily(
        "ottla_client_metrics_left_out",
        "Series of clients that are left out because there are too many.",
        left_out,
    )
    yield CounterMetricFamily("ottla_telemetry_pushes", "Pushes of clients.", telemetry.pushes)
    yield CounterMetricFamily(
        "ottla_telemetry_pushes_refused", "Pushes of clients that were refused.", telemetry.refused_pushes
    )
