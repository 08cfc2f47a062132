"""The reference of all metrics, written from what a node gives: `make reference` puts it into the docs."""

import tempfile
from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import Metric

from ottla.broker.lifecycle.process import NodeOnLoop, NodeOptions
from ottla.broker.metrics.collectors import BrokerMetrics
from ottla.metadata.configs.load import load_node_config
from ottla.runtime.poller import ServingLoop

_INTRODUCTION: Final = """\
# Metrics

A node serves metrics for Prometheus on `http://127.0.0.1:PORT/metrics` if `ottla.metrics.port` is set. 0
means any free port; the log shows which one. The node also serves the usual metrics of a process, such as
`process_resident_memory_bytes`. `make reference` writes this page from the metrics of a node.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def render_reference() -> str:
    """Return the page, as Markdown."""
    return _INTRODUCTION + "".join(_render(metrics_of_a_node()))


def metrics_of_a_node() -> list[Metric]:
    """Start a node for a moment, and return what it would tell Prometheus."""
    loop = ServingLoop()
    with tempfile.TemporaryDirectory() as directory:
        loaded = load_node_config(b"", {"log.dirs": f"{directory}/data", "ottla.telemetry.enable": "true"})
        on_loop = NodeOnLoop(loop)
        node = on_loop.start(loaded.configs, NodeOptions(port=0))
        try:
            return list(BrokerMetrics(node.broker).collect())
        finally:
            on_loop.stop()
            loop.close()


def _render(metrics: Sequence[Metric]) -> Iterator[str]:
    for metric in sorted(metrics, key=lambda metric: metric.name):
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        labels = ", ".join(f"`{label}`" for label in getattr(metric, "_labelnames", ()))
        yield f"| `{name}` | {metric.type} | {labels} | {metric.documentation} |\n"


if __name__ == "__main__":
    print(render_reference(), end="")
