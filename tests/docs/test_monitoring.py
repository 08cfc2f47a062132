"""The dashboard and the alerts of the guide ask only for metrics and labels that a node really gives."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest
import yaml  # type: ignore[import-untyped]
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from tests.support.data_plane import fetch
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.explain.lag.exporting import LagMetrics
from ottla.explain.lag.outlook import Bounds
from ottla.satellite.metrics import Metrics
from ottla.testing.ports import free_port

ROOT = Path(__file__).parents[2]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs/grafana/ottla.json").read_text())
GUIDE = (ROOT / "docs/guide/monitoring.md").read_text()
OF_PROMETHEUS = {"instance", "job", "le"}
"""Labels that Prometheus adds, or that every histogram has."""
SINCE_START = {"ottla_log_damaged_ranges_total"}
"""What is worth a word as long as the node runs."""

_METRIC = re.compile(r"\b((?:ottla|process)_\w+|up(?=\{))(?!\w)(?:\{([^}]*)\})?")


class Query(NamedTuple):
    """A query, and the panel or alert that makes it."""

    title: str
    expression: str


def queries() -> list[Query]:
    """Return all queries of the dashboard and of the guide."""
    found = [
        Query(panel["title"], target["expr"])
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", ())
    ]
    found += [Query(one["name"], one["definition"]) for one in DASHBOARD["templating"]["list"][1:]]
    for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL):
        for group in yaml.safe_load(block).get("groups", ()):
            found += [Query(rule["alert"], rule["expr"]) for rule in group["rules"]]
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of every metric of a node that has seen records, errors, groups and transactions."""
    port = free_port()
    settings = {"ottla.metrics.port": str(port), "ottla.telemetry.enable": "true"}
    with OttlaNode(tmp_path_factory.mktemp("monitoring"), settings) as node:
        producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "writer"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("watched", b"value")
        producer.commit_transaction(60)
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "readers"})
        consumer.commit(offsets=[TopicPartition("watched", 0, 1)], asynchronous=False)
        consumer.close()
        with PlainClient(node.bootstrap) as client:
            fetch(client, "nowhere", 0)
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        # Those of clients have no samples before a client pushes some.
        labels.setdefault(family.name, set())
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.title)
def test_every_query_finds_something(query: Query, exported: dict[str, set[str]]) -> None:
    metrics = _METRIC.findall(query.expression)
    assert metrics, f"{query.expression} asks for no metric"
    known = set(OF_PROMETHEUS)
    for name, matchers in metrics:
        if name == "up":
            # Prometheus itself says it of each target.
            continue
        assert name in exported, f"{query.title} asks for {name}, which no node gives"
        known |= exported[name]
        asked = set(re.findall(r"(\w+)\s*=", matchers))
        assert asked <= exported[name] | OF_PROMETHEUS, f"{name} has no labels {asked}"
    for labels in re.findall(r"\bby \(([^)]*)\)", query.expression):
        assert {label.strip() for label in labels.split(",")} <= known, query.expression
    counts = [name for name, _ in metrics if name.endswith(("_total", "_bucket")) and name not in SINCE_START]
    for name in counts:
        assert re.search(rf"rate\({name}\b", query.expression), f"{name} only grows: take its rate"


def test_the_dashboard_can_be_imported() -> None:
    """Grafana wants these; panels do not overlap."""
    assert {"title", "uid", "schemaVersion", "panels", "templating"} <= set(DASHBOARD)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells


def test_the_metrics_of_the_guide_exist(exported: dict[str, set[str]]) -> None:
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exported} | set(exported)
    bases |= {metric.name for metric in LagMetrics(Bounds()).collect()}
    bases |= set(re.findall(r"^# TYPE (\w+)", Metrics().text().decode(), re.MULTILINE))
    for name in set(re.findall(r"`(ottla_\w+)`", GUIDE)):
        assert name in bases, f"neither a node, nor a satellite, nor `ottla lag` gives {name}"
