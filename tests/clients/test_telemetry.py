"""librdkafka pushes its metrics to a node that asks for them, and they are shown with the node's own."""

import time
from pathlib import Path
from urllib.request import urlopen

from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.testing.ports import free_port
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SUBSCRIPTION = {"metrics": "*", "interval.ms": "200", "match": "client_id=watched.*"}


def pushed(port: int) -> dict[str, str]:
    """Return the metrics that clients have pushed, with the ids of the clients."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {
        sample.labels["metric"]: sample.labels["client_id"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "ottla_client_metric"
    }


def test_librdkafka_pushes_its_metrics(tmp_path: Path) -> None:
    port = free_port()
    settings = {"ottla.metrics.port": str(port), "ottla.telemetry.enable": "true"}
    with OttlaNode(tmp_path, settings) as node:
        with PlainClient(node.bootstrap) as client:
            configs = tuple(
                AlterableConfig(name=name, config_operation=0, value=value)
                for name, value in SUBSCRIPTION.items()
            )
            resource = AlterConfigsResource(
                resource_type=ResourceType.CLIENT_METRICS, resource_name="all", configs=configs
            )
            request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
            assert client.ask(request).responses[0].error_code is ErrorCode.NONE
        producers = [
            Producer({"bootstrap.servers": node.bootstrap, "client.id": name})
            for name in ("watched-producer", "another")
        ]
        deadline_s = time.monotonic() + 120
        found: dict[str, str] = {}
        while not any("producer" in metric for metric in found):
            assert time.monotonic() < deadline_s, found
            for producer in producers:
                producer.produce("orders", b"an order")
                producer.flush(60)
            found = pushed(port)
        assert set(found.values()) == {"watched-producer"}
