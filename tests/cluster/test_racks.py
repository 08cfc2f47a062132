"""Consumers that say where they are read from the replica that is near (KIP-392)."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.java.java_tools import JavaTools
from tests.support.data_plane import fetch_request
from tests.support.mixed_cluster import MixedCluster, wait_until
from tests.support.plain_client import PlainClient

from ottla.client.consumer.consumer import Consumer as OurConsumer
from ottla.model.ids import TopicPartition as OurPartition
from ottla.testing.ports import free_port

TOPIC = "orders"
RECORDS = 500
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class RackedCluster(MixedCluster):
    """Three nodes in three racks: rack 1 is that of node 1, and so on."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, "ooo", (1, 2, 3), {"replica.selector.class": SELECTOR})
        self._metrics_ports = {node.number: free_port() for node in self.nodes}
        for node in self.nodes:
            node.set("broker.rack", f"rack-{node.number}")
            node.set("ottla.metrics.port", str(self._metrics_ports[node.number]))

    def choose_near(self) -> int:
        """Return a node that follows, once the leader sends consumers in its rack there."""
        leader: int = self.admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions[0].leader
        near = 1 + leader % 3
        request = fetch_request(TOPIC, 0, rack_id=f"rack-{near}")

        def is_near() -> bool:
            with PlainClient(self.bootstrap.split(",")[leader - 1]) as client:
                data = client.ask(request, 12).responses[0].partitions[0]
            is_near: bool = data.preferred_read_replica == near
            return is_near

        wait_until(is_near, "the leader knows what its follower has")
        return near

    def sent_bytes(self) -> dict[int, int]:
        """Return how many bytes of the topic each node has sent to consumers."""
        return {number: self._sent_bytes(port) for number, port in self._metrics_ports.items()}

    def _sent_bytes(self, port: int) -> int:
        lines: list[str] = []

        def is_read() -> bool:
            # A node that was started again serves clients a little before its metrics.
            try:
                with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                    lines.extend(answer.read().decode().splitlines())
            except URLError:
                return False
            return True

        wait_until(is_read, "metrics are served")
        found = [line for line in lines if line.startswith(f'ottla_topic_bytes_out_total{{topic="{TOPIC}"}}')]
        return int(float(found[0].split()[-1])) if found else 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RackedCluster]:
    with RackedCluster(tmp_path_factory.mktemp("racks")) as cluster:
        cluster.create_topic(TOPIC, 1)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
        for number in range(RECORDS):
            producer.produce(TOPIC, f"order {number:05d} {'x' * 100}")
        assert producer.flush(60) == 0
        cluster.wait_for_in_sync(TOPIC, 3)
        yield cluster


BY_JAVA = pytest.mark.thorough(
    guard="tests/cluster/test_racks.py::test_a_consumer_reads_from_the_follower_in_its_rack"
)


def read_by_librdkafka(cluster: RackedCluster, rack: str) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "librdkafka",
            "client.rack": rack,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    count = 0
    while count < RECORDS:
        messages = consumer.consume(RECORDS, 60)
        assert messages, "they are there"
        count += sum(message.error() is None for message in messages)
    consumer.close()
    return count


def read_by_java(cluster: RackedCluster, rack: str) -> int:
    with JavaTools() as tools:
        code, written = tools.run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", cluster.bootstrap, "--topic", TOPIC, "--from-beginning"),
            *("--max-messages", str(RECORDS), "--timeout-ms", "60000"),
            *("--command-property", f"client.rack={rack}"),
        )
    assert code == 0, written
    return written.count("order ")


async def read_on(consumer: OurConsumer, count: int) -> None:
    """Read so many records."""
    async with asyncio.timeout(120):
        while count > 0:
            count -= len(await consumer.poll(max_records=count))


def our_consumer(cluster: RackedCluster, rack: str, **settings: Any) -> OurConsumer:
    return OurConsumer(cluster.bootstrap, client_rack=rack, auto_offset_reset="earliest", **settings)


def read_by_ours(cluster: RackedCluster, rack: str) -> int:
    async def read() -> None:
        async with our_consumer(cluster, rack, group_id="ours") as consumer:
            consumer.subscribe([TOPIC])
            await read_on(consumer, RECORDS)

    asyncio.run(read())
    return RECORDS


@pytest.mark.parametrize(
    "read",
    [read_by_librdkafka, pytest.param(read_by_java, marks=BY_JAVA), read_by_ours],
)
def test_a_consumer_reads_from_the_follower_in_its_rack(
    cluster: RackedCluster, read: Callable[[RackedCluster, str], int]
) -> None:
    near = cluster.choose_near()
    before = cluster.sent_bytes()
    assert read(cluster, f"rack-{near}") == RECORDS
    after = cluster.sent_bytes()
    sent = {number: after[number] - before[number] for number in after}
    assert sent[near] >= RECORDS * 100
    assert sum(sent.values()) == sent[near], "nobody else has sent any"


def test_our_consumer_goes_on_at_the_leader_when_its_follower_is_gone(cluster: RackedCluster) -> None:
    near = cluster.choose_near()

    async def read() -> None:
        async with our_consumer(cluster, f"rack-{near}", max_partition_fetch_bytes=2000) as consumer:
            consumer.assign([OurPartition(TOPIC, 0)])
            consumer.seek_to_beginning()
            await read_on(consumer, 10)
            cluster[near].kill()
            await read_on(consumer, RECORDS - 10)

    try:
        asyncio.run(read())
    finally:
        cluster[near].kill()
        cluster[near].start()
        cluster.wait_for_in_sync(TOPIC, 3)
