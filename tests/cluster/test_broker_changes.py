"""Brokers of a cluster die, come back, and are emptied. Sessions are so long that no test waits for one."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cli.typing import succeed

from ottla.testing.process_cluster import ProcessCluster

SETTINGS = {
    "broker.session.timeout.ms": "3600000",
    # So that two nodes can hold everything.
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "3",
}
_WAIT_S = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    with ProcessCluster(tmp_path_factory.mktemp("cluster"), settings=SETTINGS) as running:
        yield running


def described_until(cluster: ProcessCluster, holds: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + _WAIT_S
    while not holds(
        shown := succeed("cluster", "describe", "--json", bootstrap=cluster.running.bootstrap).data
    ):
        assert time.monotonic() < deadline, shown
        time.sleep(0.1)
    return shown


def states(shown: Any) -> dict[int, str]:
    return {node["node"]: node["state"] for node in shown["nodes"]}


def is_fenced(number: int, shown: Any) -> bool:
    return states(shown)[number] == "fenced"


def is_whole(shown: Any) -> bool:
    return set(states(shown).values()) == {"up"} and shown["under_replicated"] == 0


def write(cluster: ProcessCluster, topic: str, partitions: int, text: str) -> None:
    """Write a record to each partition, and wait until all are acknowledged."""
    acknowledged: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 120_000}
    )
    for partition in range(partitions):
        producer.produce(
            topic, text.encode(), partition=partition, on_delivery=lambda error, _: acknowledged.append(error)
        )
    producer.flush(_WAIT_S)
    assert acknowledged == [None] * partitions


def read_all(cluster: ProcessCluster, topic: str, partitions: int, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: list[str] = []
    deadline = time.monotonic() + _WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, found
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            value = message.value()
            assert value is not None
            found.append(value.decode())
    consumer.close()
    return sorted(found)


def test_a_process_that_is_killed_is_fenced_at_once_and_comes_back_at_once(cluster: ProcessCluster) -> None:
    cluster.create_topic("killed", partitions=3)
    described_until(cluster, is_whole)
    texts = ["at first"]
    write(cluster, "killed", 3, texts[0])
    # One after the other, so that the node with the active controller is among them.
    for number in (1, 2, 3):
        cluster[number].kill()
        texts.append(f"without {number}")
        write(cluster, "killed", 3, texts[-1])
        shown = described_until(cluster, partial(is_fenced, number))
        assert shown["offline"] == 0
        cluster[number].start()
        described_until(cluster, is_whole)
    assert read_all(cluster, "killed", 3, 3 * len(texts)) == sorted(texts * 3)


@pytest.mark.thorough(
    guard="tests/cluster/test_broker_changes.py::test_a_process_that_is_killed_is_fenced_at_once_and_comes_back_at_once"
)
def test_a_node_that_is_stopped_hands_over_and_comes_back_at_once(cluster: ProcessCluster) -> None:
    cluster.create_topic("stopped", partitions=3)
    described_until(cluster, is_whole)
    for number in (1, 2, 3):
        cluster[number].stop()
        write(cluster, "stopped", 3, f"without {number}")
        cluster[number].start()
        described_until(cluster, is_whole)
    assert len(read_all(cluster, "stopped", 3, 9)) == 9


def is_balanced(shown: Any) -> bool:
    held = [node["replicas"] for node in shown["nodes"]]
    return bool(max(held) - min(held) <= 1)


def test_a_node_is_emptied_and_gets_its_share_back(cluster: ProcessCluster) -> None:
    described_until(cluster, is_whole)
    bootstrap = cluster.bootstrap
    for topic in succeed("topic", "list", "--json", bootstrap=bootstrap).data:
        succeed("topic", "delete", topic["topic"], "--yes", bootstrap=bootstrap)
    succeed("topic", "create", "pairs", "--partitions=4", "--replication-factor=2", bootstrap=bootstrap)
    write(cluster, "pairs", 4, "x" * 1000)
    succeed("cluster", "drain", "3", "--yes", bootstrap=bootstrap)
    # The broker that is asked may learn of it a moment later.
    shown = described_until(
        cluster,
        lambda shown: is_whole(shown) and shown["nodes"][2]["replicas"] == shown["nodes"][2]["leaders"] == 0,
    )
    assert shown["nodes"][0]["replicas"] == shown["partitions"]
    succeed("cluster", "balance", "--yes", bootstrap=bootstrap)
    described_until(cluster, lambda shown: is_whole(shown) and is_balanced(shown))
    assert read_all(cluster, "pairs", 4, 4) == ["x" * 1000] * 4
