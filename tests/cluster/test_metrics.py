"""What people set alerts on: numbers that a node gives to Prometheus, after a known piece of work."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from tests.cluster.test_housekeeping import run_until
from tests.support.data_plane import batch_of, create_topic, fetch, produce
from tests.support.in_process import InProcessClient, in_process_node
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.broker.coordinators import group_metrics
from ottla.broker.lifecycle.startup import Node
from ottla.broker.metrics.collectors import BrokerMetrics
from ottla.testing.ports import free_port

RECORDS = 20
READ = 5


class Scrape(NamedTuple):
    """What one scrape gave."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float:
        """Return the value of one series, which has to be there."""
        return self.samples[name, frozenset(labels.items())]

    def count(self, name: str) -> int:
        """Return how many series a metric has."""
        return sum(found == name for found, _ in self.samples)


def scrape(port: int) -> Scrape:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return Scrape(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrape]:
    """A node that 20 records were written to and 5 read from, by a group, and one transaction left open."""
    port = free_port()
    settings = {"ottla.metrics.port": str(port), "offsets.topic.num.partitions": "3"}
    with OttlaNode(tmp_path_factory.mktemp("metrics"), settings) as node:
        with PlainClient(node.bootstrap) as client:
            create_topic(client, "orders", partitions=2)
            fetch(client, "nowhere", 0)
            produce(client, "orders", batch_of(b"x"), partition=7)
        producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "booker"})
        producer.init_transactions(60)
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.produce("orders", b"v" * 1000, partition=number % 2)
        producer.commit_transaction(60)
        producer.begin_transaction()
        producer.produce("orders", b"open", partition=0)
        assert producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "readers"})
        consumer.assign([TopicPartition("orders", 0, 0)])
        assert len(consumer.consume(READ, timeout=60)) == READ
        consumer.commit(offsets=[TopicPartition("orders", 0, READ)], asynchronous=False)
        # The ledger of a pipeline: the offset is the number of a batch.
        ledger = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "ottla.ledger.pipeline.0"})
        ledger.commit(offsets=[TopicPartition("orders", 1, 1)], asynchronous=False)
        yield scrape(port)
        ledger.close()
        consumer.close()
        producer.abort_transaction(60)


def test_records_and_bytes_are_counted_by_topic(scraped: Scrape) -> None:
    # Two markers of the committed transaction, and the record of the open one.
    assert scraped.value("ottla_topic_records_in_total", topic="orders") == RECORDS + 2 + 1
    bytes_in = scraped.value("ottla_topic_bytes_in_total", topic="orders")
    assert bytes_in == scraped.value("ottla_log_bytes", topic="orders")
    assert bytes_in > RECORDS * 1000
    assert scraped.value("ottla_topic_bytes_out_total", topic="orders") > READ * 1000


def test_offsets_are_given_for_each_partition(scraped: Scrape) -> None:
    assert scraped.value("ottla_log_end_offset", topic="orders", partition="0") == RECORDS / 2 + 1 + 1
    assert scraped.value("ottla_log_end_offset", topic="orders", partition="1") == RECORDS / 2 + 1
    assert scraped.value("ottla_log_start_offset", topic="orders", partition="1") == 0


def test_errors_are_counted_by_api_and_code(scraped: Scrape) -> None:
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert scraped.value("ottla_request_errors_total", api="fetch", error=unknown) == 1
    assert scraped.value("ottla_request_errors_total", api="produce", error=unknown) == 1


def test_the_lag_of_a_group_is_what_it_has_not_committed(scraped: Scrape) -> None:
    behind = RECORDS / 2 + 1 + 1 - READ
    assert scraped.value("ottla_group_lag_records", group="readers", topic="orders") == behind
    assert scraped.value("ottla_group_committed_offset", group="readers", topic="orders") == READ
    assert scraped.value("ottla_group_lags_left_out") == 0


def test_the_ledger_of_a_pipeline_has_no_lag(scraped: Scrape) -> None:
    assert scraped.count("ottla_group_lag_records") == 1
    assert scraped.count("ottla_group_committed_offset") == 1


def test_groups_and_transactions_are_counted_by_state(scraped: Scrape) -> None:
    assert scraped.value("ottla_groups", type="classic", state="Empty") == 2
    assert scraped.value("ottla_transactions", state="Ongoing") == 1


def test_the_times_of_syncs_are_given(scraped: Scrape) -> None:
    count = scraped.value("ottla_sync_seconds_count")
    assert count >= 2
    assert scraped.value("ottla_sync_seconds_bucket", le="+Inf") == count
    assert 0 < scraped.value("ottla_sync_seconds_sum") < 60 * count


# Bounds and corners


def collect(node: Node) -> Scrape:
    return Scrape(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in BrokerMetrics(node.broker).collect()
            for sample in family.samples
        }
    )


def test_a_fetch_that_waited_is_counted_once(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "t")
        produce(client, "t", batch_of(b"x" * 100))
        size_bytes = collect(node).value("ottla_log_bytes", topic="t")
        data = fetch(client, "t", 0, min_bytes=1 << 20, max_wait_ms=10)
        assert data.records is not None
        assert collect(node).value("ottla_topic_bytes_out_total", topic="t") == size_bytes


def test_only_the_largest_lags_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_metrics, "SERIES_MAX", 2)
    with OttlaNode(tmp_path / "node") as started, PlainClient(started.bootstrap) as client:
        create_topic(client, "t")
        produce(client, "t", batch_of(*[b"x"] * 10))
        for number in range(4):
            consumer = Consumer({"bootstrap.servers": started.bootstrap, "group.id": f"group {number}"})
            consumer.commit(offsets=[TopicPartition("t", 0, number)], asynchronous=False)
            consumer.close()
    settings = {"log.dirs": str(started.data_directory)}
    with in_process_node(tmp_path, settings) as node:
        run_until(node, lambda: collect(node).value("ottla_group_lags_left_out") == 2)
        found = collect(node)
    assert found.count("ottla_group_lag_records") == 2
    assert found.value("ottla_group_lag_records", group="group 0", topic="t") == 10
    assert found.value("ottla_group_lag_records", group="group 1", topic="t") == 9


def test_a_node_of_many_partitions_gives_no_offsets_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.broker.metrics.collectors.PARTITION_SERIES_MAX", 2)
    with in_process_node(tmp_path) as node:
        create_topic(InProcessClient(node), "t", partitions=2)
        assert collect(node).count("ottla_log_end_offset") == 2
        create_topic(InProcessClient(node), "u")
        assert collect(node).count("ottla_log_end_offset") == 0
        assert collect(node).count("ottla_log_bytes") == 2
