"""What is collected for Prometheus, if some of it cannot be."""

from collections.abc import Iterator

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric

from ottla.broker.metrics.collectors import _collect


def test_a_part_that_fails_takes_no_metrics_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    def fails_midway() -> Iterator[Metric]:
        yield GaugeMetricFamily("half", "Of a part that fails.", 1)
        raise RuntimeError("a bug of ours")

    def works() -> Iterator[Metric]:
        yield GaugeMetricFamily("whole", "Of a part that works.", 1)

    assert [metric.name for metric in _collect((fails_midway, works))] == ["whole"]
    assert "could not be collected" in caplog.text
