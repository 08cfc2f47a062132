"""Dead letters on three nodes: the letters' leader is another broker, and any of them is killed meanwhile."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.watermarks import watermarks

from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.client.share import AcknowledgeFailed, AcknowledgeType, ShareConsumer
from ottla.testing.process_cluster import ProcessCluster
from ottla.wire.config_kinds import ResourceType

TOPIC, DEAD, GROUP = "alerts", "dlq.alerts", "workers"
RECORDS = 400
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


def _create(bootstrap: str, letters_on: Sequence[int]) -> None:
    """Make a queue that node 1 leads, and a topic for its letters that another one leads."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for_letters = {"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "2000"}
    topics = [
        NewTopic(TOPIC, 1, replica_assignment=[[1, 3, 2]]),
        NewTopic(DEAD, 1, replica_assignment=[list(letters_on)], config=for_letters),
    ]
    for created in admin.create_topics(topics).values():
        created.result(60)


async def _fill(bootstrap: str, values: Sequence[bytes]) -> None:
    configs = {
        "share.auto.offset.reset": "earliest",
        "errors.deadletterqueue.topic.name": DEAD,
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    async with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        await admin.configs.alter(ResourceType.GROUP, GROUP, configs)
        for value in values:
            await producer.send(TOPIC, value)


async def _reject(bootstrap: str) -> None:
    """Reject all that comes, until cancelled."""
    async with ShareConsumer(
        bootstrap, group_id=GROUP, share_acknowledgement_mode="explicit", max_poll_records=10
    ) as consumer:
        consumer.subscribe([TOPIC])
        while True:
            for record in await consumer.poll(500):
                consumer.acknowledge(record, AcknowledgeType.REJECT)
            # What was not taken, since a broker died, is delivered again.
            with suppress(AcknowledgeFailed):
                await consumer.commit()


class Letters:
    """Reads the topic of the letters, from its beginning on."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
        self._consumer.assign([TopicPartition(DEAD, 0, 0)])
        self.found: list[tuple[int, bytes]] = []

    def read(self, count: int) -> None:
        """Read until there are so many."""
        deadline = time.monotonic() + 120
        while len(self.found) < count:
            assert time.monotonic() < deadline, f"only {len(self.found)} of {count} letters are there"
            for message in self._consumer.consume(50, 0.2):
                if message.error() is None:
                    headers = dict(message.headers() or [])
                    offset = int(headers["__dlq.errors.offset"] or b"-1")
                    self.found.append((offset, message.value() or b""))

    def read_to_the_end(self) -> None:
        _, end = watermarks(self._consumer, DEAD)
        self.read(end)

    def close(self) -> None:
        self._consumer.close()


async def _work(cluster: ProcessCluster, letters: Letters, values: Sequence[bytes]) -> None:
    await _fill(cluster.bootstrap, values)
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        rejecting = group.create_task(_reject(cluster.bootstrap))
        # The leader of the queue, then that of the letters, each while letters
        # are on their way.
        for share, victim in enumerate((1, 2), 1):
            await asyncio.to_thread(letters.read, RECORDS * share // 4)
            await asyncio.to_thread(cluster[victim].kill)
            await asyncio.to_thread(cluster[victim].start)
        await asyncio.to_thread(letters.read, RECORDS)
        rejecting.cancel()
    await asyncio.to_thread(letters.read_to_the_end)


@pytest.mark.thorough(guard="tests/unit/broker/share/test_dead_letters.py")
def test_letters_go_to_another_broker_once_through_kills(tmp_path: Path) -> None:
    rng = random.Random(5)
    # Some are larger than the topic of the letters allows.
    values = [rng.randbytes(5_000 if number % 50 == 7 else 100) for number in range(RECORDS)]
    with ProcessCluster(tmp_path, settings=SETTINGS) as cluster:
        _create(cluster.bootstrap, [2, 1, 3])
        letters = Letters(cluster.bootstrap)
        try:
            asyncio.run(_work(cluster, letters, values))
        finally:
            letters.close()
    assert Counter(offset for offset, _ in letters.found) == Counter(range(RECORDS)), "one letter for each"
    assert dict(letters.found) == dict(enumerate(values)), "with all that its record had"
