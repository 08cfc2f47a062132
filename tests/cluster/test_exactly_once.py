"""Reading a topic and writing another, exactly once, while the node is killed, with clients people use."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cluster.copiers import (
    IsOver,
    copy_with_aiokafka,
    copy_with_confluent,
    copy_with_java,
    copy_with_ottla,
)
from tests.cluster.node_faults import NodeFaults
from tests.java.jars import java_classpath
from tests.support.ottla_node import OttlaNode

RECORDS = int(os.environ.get("RECORDS", "2000"))
PARTITIONS = 2
# What the node promises is the same for all of them: one is tried each time.
OTHER_CLIENTS = pytest.mark.thorough(
    guard="tests/cluster/test_exactly_once.py::test_every_record_is_copied_exactly_once"
)
SECONDS_MAX = 60 + RECORDS / 20


@pytest.mark.parametrize(
    ("copy", "interval_s"),
    [
        pytest.param(copy_with_confluent, 1.0, marks=OTHER_CLIENTS, id="confluent-kafka"),
        pytest.param(copy_with_aiokafka, 1.0, marks=OTHER_CLIENTS, id="aiokafka"),
        pytest.param(copy_with_ottla, 1.0, id="ottla"),
        pytest.param(copy_with_java, 3.0, marks=OTHER_CLIENTS, id="java"),
    ],
)
def test_every_record_is_copied_exactly_once(
    copy: Callable[[str, int, IsOver], None], interval_s: float, tmp_path: Path
) -> None:
    if copy is copy_with_java:
        java_classpath()  # Skips here, where that works, and not in the threads that copy.
    seed = random.randrange(1_000_000)
    with OttlaNode(tmp_path / "node") as node:
        create_topics(node.bootstrap)
        fill(node.bootstrap, range(RECORDS // 2))
        over = Event()
        faults = NodeFaults(node, seed, interval_s, pause_s=0.5)
        breaker = Thread(target=faults, args=(over,))
        copiers = [
            Thread(target=copy, args=(node.bootstrap, partition, over.is_set))
            for partition in range(PARTITIONS)
        ]
        for thread in (breaker, *copiers):
            thread.start()
        try:
            # A fast machine would have copied everything before anything breaks.
            assert faults.have_begun.wait(SECONDS_MAX), "nothing was broken"
            fill(node.bootstrap, range(RECORDS // 2, RECORDS))
            copied = read(node.bootstrap, RECORDS)
        finally:
            over.set()
            for thread in (breaker, *copiers):
                thread.join()
        copied += read_rest(node.bootstrap, len(copied))
    assert sorted(copied) == list(range(RECORDS)), f"seed {seed}"


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("in", "out")]).values():
        future.result(30)


def fill(bootstrap: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in numbers:
        producer.produce("in", b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(120) == 0


def reader(bootstrap: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("out", partition, 0) for partition in range(PARTITIONS)])
    return consumer


def read(bootstrap: str, count: int) -> list[int]:
    """Read until there is enough, or the time is over."""
    consumer = reader(bootstrap)
    values: list[int] = []
    deadline = monotonic() + SECONDS_MAX
    while len(values) < count and monotonic() < deadline:
        for message in consumer.consume(500, 0.5):
            if message.error() is None:
                value = message.value()
                assert value is not None
                values.append(int(value))
    consumer.close()
    return values


def read_rest(bootstrap: str, known: int) -> list[int]:
    """Return what is there beyond what was read: nothing, if nothing was copied twice."""
    consumer = reader(bootstrap)
    values: list[int] = []
    quiet = 0
    while quiet < 3:
        messages = [one for one in consumer.consume(500, 0.5) if one.error() is None]
        quiet = 0 if messages else quiet + 1
        for message in messages:
            value = message.value()
            assert value is not None
            values.append(int(value))
    consumer.close()
    return values[known:]
