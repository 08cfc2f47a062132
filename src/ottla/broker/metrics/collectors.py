"""What the broker counts, for Prometheus.

Counting is done in plain integers where things happen; only a scrape turns them into metrics. The scrape
runs in a thread of its own and reads numbers while the event loop changes them: each is right, and they may
be a moment apart.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from ottla.broker.controller.controller_server import ControllerServer
from ottla.broker.logs.partition import Partition
from ottla.broker.metrics.controller_metrics import ControllerMetrics
from ottla.broker.metrics.replication_metrics import replication_metrics
from ottla.broker.node import Broker
from ottla.broker.serving.routes import Route
from ottla.satellite.metrics_page import serve_page
from ottla.world.disk import DiskError

_logger: Final = logging.getLogger("ottla.metrics")

PARTITION_SERIES_MAX: Final = 2000
"""Up to this many partitions, each has its own series. With 10,000 a scrape would have megabytes."""

_ONLY_OF_FEW: Final = f"Not served by a node with more than {PARTITION_SERIES_MAX} partitions."


def _collect(parts: Iterable[Callable[[], Iterable[Metric]]]) -> Iterator[Metric]:
    """Give the metrics of all parts. One that fails, by a bug, is logged; the others are given."""
    for part in parts:
        try:
            metrics = list(part())
        except Exception:
            _logger.exception("some metrics could not be collected")
            continue
        yield from metrics


class ControllerServerMetrics:
    """Collects the numbers of a node that is a controller and no broker."""

    def __init__(self, server: ControllerServer) -> None:
        self._server = server
        self._cluster = ControllerMetrics()

    def collect(self) -> Iterator[Metric]:
        """Give all metrics."""
        server = self._server
        return _collect(
            (
                partial(_requests, server),
                partial(_connections, server),
                partial(self._cluster.collect, server.image, server.quorum.is_active),
            )
        )


class BrokerMetrics:
    """Collects the numbers of a broker when they are asked for."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._cluster = ControllerMetrics()

    def collect(self) -> Iterator[Metric]:
        """Give all metrics."""
        return _collect(self._parts())

    def _parts(self) -> Iterator[Callable[[], Iterable[Metric]]]:
        broker = self._broker
        yield partial(_requests, broker)
        yield partial(_connections, broker)
        yield self._metadata
        yield self._topics
        yield self._offsets
        yield self._syncs
        yield self._disks
        yield partial(replication_metrics, broker)
        yield partial(self._cluster.collect, broker.image, broker.quorum.is_active)
        for place in broker.coordinators:
            yield place.hosted.metrics
        yield self._waiting
        if broker.config.ottla_telemetry_enable:
            from ottla.broker.telemetry.client_metrics import client_metrics

            yield partial(client_metrics, broker.telemetry)

    def _metadata(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "ottla_metadata_apply_errors",
            "How often a part of the node has failed to act on new metadata: a bug, which the log tells of.",
            self._broker.metadata.errors,
        )

    def _topics(self) -> Iterator[Metric]:
        partitions = list(self._broker.partitions)
        yield GaugeMetricFamily("ottla_partitions", "Partitions on this node.", len(partitions))
        yield GaugeMetricFamily(
            "ottla_partitions_led",
            "Partitions that this node leads.",
            sum(partition.is_leader for partition in partitions),
        )
        topics: dict[str, list[Partition]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(partition)
        labels = ("topic",)
        log_bytes = GaugeMetricFamily("ottla_log_bytes", "Bytes in the logs of a topic.", labels=labels)
        records_in = CounterMetricFamily(
            "ottla_topic_records_in",
            "Records written to a topic since it was created, including transaction markers.",
            labels=labels,
        )
        bytes_in = CounterMetricFamily(
            "ottla_topic_bytes_in",
            "Bytes of batches written to a topic since the node started.",
            labels=labels,
        )
        bytes_out = CounterMetricFamily(
            "ottla_topic_bytes_out",
            "Bytes of batches read from a topic since the node started.",
            labels=labels,
        )
        for topic, its_partitions in topics.items():
            log_bytes.add_metric((topic,), sum(one.log.size_bytes for one in its_partitions))
            records_in.add_metric((topic,), sum(one.log.log_end_offset for one in its_partitions))
            bytes_in.add_metric((topic,), sum(one.bytes_in for one in its_partitions))
            bytes_out.add_metric((topic,), sum(one.bytes_out for one in its_partitions))
        yield from (log_bytes, records_in, bytes_in, bytes_out)
        yield from self._damages()

    def _offsets(self) -> Iterator[Metric]:
        labels = ("topic", "partition")
        start = GaugeMetricFamily(
            "ottla_log_start_offset", f"First offset of a partition. {_ONLY_OF_FEW}", labels=labels
        )
        end = GaugeMetricFamily(
            "ottla_log_end_offset",
            f"Offset after the last record of a partition. {_ONLY_OF_FEW}",
            labels=labels,
        )
        if len(self._broker.partitions) <= PARTITION_SERIES_MAX:
            for partition in self._broker.partitions:
                values = (partition.topic, str(partition.index))
                start.add_metric(values, partition.log.log_start_offset)
                end.add_metric(values, partition.log.log_end_offset)
        yield start
        yield end

    def _syncs(self) -> Iterator[Metric]:
        times = self._broker.flusher.sync_times
        syncs = HistogramMetricFamily("ottla_sync_seconds", "Duration of log syncs to disk.")
        syncs.add_metric((), _cumulated(times.buckets), times.total_ns / 1e9)
        yield syncs

    def _disks(self) -> Iterator[Metric]:
        labels = ("directory",)
        total = GaugeMetricFamily(
            "ottla_disk_bytes", "Size of the file system that a log directory is on.", labels=labels
        )
        usable = GaugeMetricFamily(
            "ottla_disk_free_bytes", "Bytes that the node can still use of it.", labels=labels
        )
        short = GaugeMetricFamily(
            "ottla_disk_nearly_full",
            "1 while less than `ottla.disk.reserve.bytes` is free, and producers are refused.",
            labels=labels,
        )
        offline = GaugeMetricFamily(
            "ottla_log_directory_offline", "1 if a log directory has failed.", labels=labels
        )
        for directory in self._broker.directories.directories:
            volume, values = directory.volume, (directory.path,)
            short.add_metric(values, volume.is_short)
            offline.add_metric(values, directory.is_offline)
            with suppress(DiskError):
                usage = volume.disk.usage(volume.path)
                total.add_metric(values, usage.total_bytes)
                usable.add_metric(values, usage.usable_bytes)
        yield from (total, usable, short, offline)

    def _damages(self) -> Iterator[Metric]:
        ranges = CounterMetricFamily(
            "ottla_log_damaged_ranges",
            "Damaged ranges found in the logs of a directory when the node started.",
            labels=("directory",),
        )
        kept = CounterMetricFamily(
            "ottla_log_damaged_bytes",
            "Bytes in these ranges. They are kept in `.damaged` files.",
            labels=("directory",),
        )
        for directory in self._broker.directories.directories:
            ranges.add_metric((directory.path,), directory.volume.damaged_ranges)
            kept.add_metric((directory.path,), directory.volume.damaged_bytes)
        yield ranges
        yield kept

    def _waiting(self) -> Iterator[Metric]:
        broker = self._broker
        yield GaugeMetricFamily(
            "ottla_fetches_parked", "Fetch requests that are waiting for data.", len(broker.parked_fetches)
        )
        yield GaugeMetricFamily("ottla_fetch_sessions", "Open fetch sessions.", len(broker.fetch_sessions))
        yield CounterMetricFamily(
            "ottla_fetch_session_evictions",
            "Fetch sessions evicted to make room for others.",
            broker.fetch_sessions.evictions,
        )


def _latencies(routes: list[Route]) -> Metric:
    latencies = HistogramMetricFamily(
        "ottla_request_seconds", "Time from the arrival of a request to its response.", labels=("api",)
    )
    by_api: dict[str, tuple[list[int], int]] = {}
    for route in routes:
        name = route.api.key.name.lower()
        buckets, total_ns = by_api.get(name, ([0] * len(route.latency_buckets), 0))
        merged = [mine + other for mine, other in zip(route.latency_buckets, buckets, strict=True)]
        by_api[name] = (merged, total_ns + route.total_ns)
    for name, (buckets, total_ns) in by_api.items():
        latencies.add_metric((name,), _cumulated(buckets), total_ns / 1e9)
    return latencies


def _errors(routes: list[Route]) -> Metric:
    by_api: Counter[tuple[str, str]] = Counter()
    for route in routes:
        for error, count in list(route.errors.items()):
            by_api[route.api.key.name.lower(), error.name] += count
    errors = CounterMetricFamily(
        "ottla_request_errors",
        "Errors in responses. Each part of a response counts.",
        labels=("api", "error"),
    )
    for labels, count in by_api.items():
        errors.add_metric(labels, count)
    return errors


def _cumulated(buckets: Sequence[int]) -> list[tuple[str, float]]:
    """Return the counts of a histogram as Prometheus wants them: of all that is below a bound."""
    cumulated: list[tuple[str, float]] = []
    count = 0
    for power, in_bucket in enumerate(buckets):
        count += in_bucket
        cumulated.append((str(2**power / 1e6), count))
    return [*cumulated, ("+Inf", count)]


def _requests(node: Broker | ControllerServer) -> Iterator[Metric]:
    routes = list(node.routes)
    labels = ("api", "version")
    requests = CounterMetricFamily("ottla_requests", "Requests received.", labels=labels)
    received = CounterMetricFamily("ottla_request_bytes", "Bytes received in requests.", labels=labels)
    sent = CounterMetricFamily("ottla_response_bytes", "Bytes sent in responses.", labels=labels)
    for route in routes:
        values = (route.api.key.name.lower(), str(route.version))
        requests.add_metric(values, route.requests)
        received.add_metric(values, route.received_bytes)
        sent.add_metric(values, route.sent_bytes)
    yield requests
    yield received
    yield sent
    yield _errors(routes)
    yield _latencies(routes)


def _connections(node: Broker | ControllerServer) -> Iterator[Metric]:
    listeners = node.listeners
    yield GaugeMetricFamily("ottla_connections", "Open connections.", len(listeners.connections))
    yield CounterMetricFamily("ottla_connections_accepted", "Connections accepted.", listeners.accepted)
    yield CounterMetricFamily(
        "ottla_connections_refused", "Connections refused because of a limit.", listeners.refused
    )
    events = CounterMetricFamily(
        "ottla_audit_events",
        "Denied requests, changes, logins and failed logins.",
        labels=("event",),
    )
    for event, count in list(node.audit.counts.items()):
        events.add_metric((event,), count)
    yield events


def serve_metrics(broker: Broker, port: int) -> int:
    """Serve the metrics on a loopback port, 0 for a free one. Returns the port.

    They contain the names of topics and need no login, so they are served on this machine only.
    """
    for place in broker.coordinators:
        # Made here, on the loop: another thread looks at them.
        assert place.hosted
    return _serve(BrokerMetrics(broker), port)


def serve_controller_metrics(server: ControllerServer, port: int) -> int:
    """Serve those of a node that is a controller and no broker. Returns the port."""
    return _serve(ControllerServerMetrics(server), port)


def _serve(metrics: BrokerMetrics | ControllerServerMetrics, port: int) -> int:
    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    return int(serve_page(registry, port).server_port)
