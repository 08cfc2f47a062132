"""The figures of `ottla lag --watch` for Prometheus, on loopback."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from ottla.explain.lag.looking import Looks
from ottla.explain.lag.outlook import (
    LEVELS,
    Bounds,
    records_deleted_unread,
    seconds_to_deletion,
    seconds_to_zero,
    total,
    total_speed,
)
from ottla.satellite.metrics_page import serve_page


class LagMetrics:
    """What the last look has found. A thread of its own serves it, and only reads."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._looks = Looks(0.0, ())
        self._now_ms = 0.0

    def serve(self, port: int) -> int:
        """Begin to serve; 0 is a free port. Returns the port."""
        registry = CollectorRegistry()
        registry.register(self)
        server = serve_page(registry, port)
        return int(server.server_port)

    def update(self, looks: Looks, now_ms: float) -> None:
        """Serve this look from now on."""
        self._looks, self._now_ms = looks, now_ms

    def collect(self) -> Iterator[Metric]:
        """Give the metrics of all groups."""
        labels = ("group",)
        families = {
            name: GaugeMetricFamily(f"ottla_lag_{name}", text, labels=labels)
            for name, text in (
                ("records", "Records that a group has not committed yet."),
                ("level", "How bad the lag looks: 0 normal, 1 caution, 2 warning, 3 critical."),
                ("reads_per_second", "Records a second that a group commits."),
                ("writes_per_second", "Records a second that are written to the partitions of a group."),
                ("seconds_to_zero", "Seconds until a group has caught up, at these speeds. Missing: never."),
                ("seconds_to_deletion", "Seconds until retention may delete records that are not read."),
                ("deleted_unread", "Records that retention has deleted before they were read."),
            )
        }
        looks, now_ms = self._looks, self._now_ms
        for group in looks.groups:
            lag = total(item.lag.lag for item in group.partitions)
            if lag is None:
                continue
            speed = total_speed(group.partitions)
            limits = [seconds_to_deletion(item, now_ms) for item in group.partitions]
            values = {
                "records": lag,
                "level": LEVELS.index(self._bounds.label(lag) or LEVELS[0]),
                "reads_per_second": None if speed is None else speed.reads,
                "writes_per_second": None if speed is None else speed.writes,
                "seconds_to_zero": seconds_to_zero(group.partitions),
                "seconds_to_deletion": min((item for item in limits if item is not None), default=None),
                "deleted_unread": sum(records_deleted_unread(item.lag) for item in group.partitions),
            }
            for name, value in values.items():
                if value is not None:
                    families[name].add_metric((group.group_id,), value)
        yield from families.values()
