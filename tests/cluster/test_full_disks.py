"""The disk of a node is full, on a real file system: what goes on, what does not, and the way out."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.cli.typing import run, succeed
from tests.cluster.disks import SmallDisk

from ottla.testing.node import ProcessNode
from ottla.testing.process_cluster import ProcessCluster

pytestmark = [
    pytest.mark.thorough(guard="tests/simulation/node/test_full_disk.py::test_a_full_disk_has_a_way_out"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems"),
]
MIB = 24
SETTINGS = {
    "ottla.acks.all.sync": "true",
    "ottla.journal.enable": "true",
    "log.segment.bytes": "1048576",
    "log.segment.delete.delay.ms": "500",
    "log.retention.check.interval.ms": "3600000",
}
VALUE = os.urandom(50_000)
_PATIENCE_S = 120


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with SmallDisk(tmp_path / "disk", MIB):
        yield tmp_path / "disk"


def fill(bootstrap: str, topic: str) -> tuple[int, int]:
    """Write until a producer is refused. Returns how many records were taken, and the error."""
    errors: list[int] = []
    taken = 0

    def told(error: KafkaError | None, _message: object) -> None:
        nonlocal taken
        if error is None:
            taken += 1
        else:
            errors.append(error.code())

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "message.timeout.ms": 60_000})
    while not errors:
        producer.produce(topic, VALUE, on_delivery=told)
        producer.flush(_PATIENCE_S)
    return taken, errors[0]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def read(bootstrap: str, topic: str, count: int) -> None:
    """Read the first records of a topic, and commit them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    got = 0
    while got < count:
        message = consumer.poll(_PATIENCE_S)
        assert message is not None
        assert message.error() is None
        assert message.value() == VALUE
        got += 1
    consumer.commit(asynchronous=False)
    consumer.close()


def is_taken(bootstrap: str, topic: str) -> bool:
    return run("produce", topic, "-v", "again", bootstrap=bootstrap).code == 0


def test_one_node_with_a_full_disk_has_a_way_out(disk: Path) -> None:
    with ProcessNode(disk, SETTINGS) as node:
        node.create_topic("orders")
        taken, error = fill(node.bootstrap, "orders")
        assert error == KafkaError.POLICY_VIOLATION
        assert taken > 100
        said = run("produce", "orders", "-v", "one more", bootstrap=node.bootstrap)
        assert said.code == 1
        assert "nearly full" in said.err
        # Nothing of this needs the room that producers may not have.
        for _ in range(2):
            read(node.bootstrap, "orders", taken)
            succeed("topic", "create", "fresh", bootstrap=node.bootstrap)
            succeed("topic", "delete", "fresh", "--yes", bootstrap=node.bootstrap)
            node.restart()
            assert not is_taken(node.bootstrap, "orders")
        succeed("config", "set", "topic", "orders", "retention.bytes=2000000", bootstrap=node.bootstrap)
        until(lambda: is_taken(node.bootstrap, "orders"))
        fill(node.bootstrap, "orders")
        node.kill()
        node.start()
        succeed("topic", "delete", "orders", "--yes", bootstrap=node.bootstrap)
        until(lambda: is_taken(node.bootstrap, "new"))


def test_what_others_have_written_to_the_disk_is_noticed(disk: Path) -> None:
    with ProcessNode(disk, SETTINGS) as node:
        node.create_topic("orders")
        assert is_taken(node.bootstrap, "orders")
        ballast = disk / "ballast"
        ballast.write_bytes(bytes((MIB << 20) - (MIB << 20) // 12 - sum_of(disk)))
        until(lambda: not is_taken(node.bootstrap, "orders"))
        ballast.unlink()
        until(lambda: is_taken(node.bootstrap, "orders"))


def sum_of(directory: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*"))


def test_three_nodes_with_full_disks_have_a_way_out(tmp_path: Path) -> None:
    roots = [tmp_path / f"node-{number}" for number in (1, 2, 3)]
    with (
        SmallDisk(roots[0], MIB),
        SmallDisk(roots[1], MIB),
        SmallDisk(roots[2], MIB),
        ProcessCluster(tmp_path, settings=SETTINGS) as cluster,
    ):
        cluster.create_topic("orders")
        taken, error = fill(cluster.bootstrap, "orders")
        assert error in (KafkaError.POLICY_VIOLATION, KafkaError.NOT_ENOUGH_REPLICAS)
        read(cluster.bootstrap, "orders", taken)
        for node in cluster:
            node.restart()
        read(cluster.bootstrap, "orders", taken)
        assert not is_taken(cluster.bootstrap, "orders")
        succeed("config", "set", "topic", "orders", "retention.bytes=2000000", bootstrap=cluster.bootstrap)
        until(lambda: is_taken(cluster.bootstrap, "orders"))
        assert all(node.is_running for node in cluster)
