"""What the broker counts, for Prometheus.

Counting is done in plain integers where things happen; only a scrape turns them into metrics. The scrape
runs in a thread of its own and reads numbers while the event loop changes them: each is right, and they may
be a moment apart.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

if TYPE_CHECKING:
    from ottla.broker.dispatch import Route
    from ottla.broker.node import Broker

HOST: Final = "127.0.0.1"
"""Metrics name topics, and nobody has to log in to see them: so they stay on this machine."""


class BrokerMetrics:
    """Collects the numbers of a broker when they are asked for."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        """Give all metrics."""
        yield from self._requests()
        yield from self._connections()
        yield from self._logs()
        yield from self._waiting()

    def _requests(self) -> Iterator[Metric]:
        routes = list(self._broker.routes)
        labels = ("api", "version")
        requests = CounterMetricFamily("ottla_requests", "Requests received.", labels=labels)
        received = CounterMetricFamily("ottla_request_bytes", "Bytes of requests.", labels=labels)
        sent = CounterMetricFamily("ottla_response_bytes", "Bytes of answers.", labels=labels)
        for route in routes:
            values = (route.api.key.name.lower(), str(route.version))
            requests.add_metric(values, route.requests)
            received.add_metric(values, route.received_bytes)
            sent.add_metric(values, route.sent_bytes)
        yield requests
        yield received
        yield sent
        yield _latencies(routes)

    def _connections(self) -> Iterator[Metric]:
        listeners = self._broker.listeners
        yield GaugeMetricFamily("ottla_connections", "Connections now.", len(listeners.connections))
        yield CounterMetricFamily("ottla_connections_accepted", "Connections accepted.", listeners.accepted)
        yield CounterMetricFamily(
            "ottla_connections_refused", "Connections refused because of a limit.", listeners.refused
        )

    def _logs(self) -> Iterator[Metric]:
        partitions = list(self._broker.partitions)
        sizes: dict[str, int] = {}
        for partition in partitions:
            sizes[partition.topic] = sizes.get(partition.topic, 0) + partition.log.size_bytes
        yield GaugeMetricFamily("ottla_partitions", "Partitions on this node.", len(partitions))
        yield GaugeMetricFamily(
            "ottla_partitions_led",
            "Partitions that this node leads.",
            sum(partition.is_leader for partition in partitions),
        )
        log_bytes = GaugeMetricFamily("ottla_log_bytes", "Bytes in the logs of a topic.", labels=("topic",))
        for topic, size_bytes in sizes.items():
            log_bytes.add_metric((topic,), size_bytes)
        yield log_bytes

    def _waiting(self) -> Iterator[Metric]:
        broker = self._broker
        yield GaugeMetricFamily("ottla_fetches_parked", "Fetches that wait.", len(broker.parked_fetches))
        yield GaugeMetricFamily("ottla_fetch_sessions", "Fetch sessions.", len(broker.fetch_sessions))
        yield CounterMetricFamily(
            "ottla_fetch_session_evictions",
            "Fetch sessions that made room for others.",
            broker.fetch_sessions.evictions,
        )


def _latencies(routes: "list[Route]") -> Metric:
    latencies = HistogramMetricFamily(
        "ottla_request_seconds", "Time from a request's arrival to its answer.", labels=("api",)
    )
    by_api: dict[str, tuple[list[int], int]] = {}
    for route in routes:
        name = route.api.key.name.lower()
        buckets, total_ns = by_api.get(name, ([0] * len(route.latency_buckets), 0))
        merged = [mine + other for mine, other in zip(route.latency_buckets, buckets, strict=True)]
        by_api[name] = (merged, total_ns + route.total_ns)
    for name, (buckets, total_ns) in by_api.items():
        cumulated, count = [], 0
        for power, in_bucket in enumerate(buckets):
            count += in_bucket
            cumulated.append((str(2**power / 1e6), count))
        latencies.add_metric((name,), [*cumulated, ("+Inf", count)], total_ns / 1e9)
    return latencies


def serve_metrics(broker: "Broker", port: int) -> int:
    """Serve the metrics on a loopback port, 0 for a free one. Returns the port."""
    registry = CollectorRegistry()
    registry.register(BrokerMetrics(broker))
    ProcessCollector(registry=registry)
    server, _ = start_http_server(port, HOST, registry)
    return int(server.server_port)
