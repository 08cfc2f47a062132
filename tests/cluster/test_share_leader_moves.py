"""The state of a share group moves with the leaders of its partitions, by election and by a kill."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.client.share import AcknowledgeFailed, AcknowledgeType, ShareConsumer
from ottla.model.ids import TopicPartition
from ottla.testing.process_cluster import ProcessCluster
from ottla.wire.config_kinds import ResourceType

TOPIC, GROUP = "orders", "workers"
PARTITIONS, RECORDS, WORKERS = 3, 900, 4
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class Work:
    """What the workers have done, by what they were answered."""

    def __init__(self) -> None:
        self.done: set[tuple[int, int]] = set()
        self.released: set[tuple[int, int]] = set()
        self.unanswered: set[tuple[int, int]] = set()
        self.again: list[tuple[int, int]] = []

    async def go_on(self, bootstrap: str) -> None:
        """Accept all that comes, but every seventh record only when it comes again. Until cancelled."""
        async with ShareConsumer(
            bootstrap, group_id=GROUP, share_acknowledgement_mode="explicit", max_poll_records=10
        ) as consumer:
            consumer.subscribe([TOPIC])
            while True:
                accepted = set()
                for record in await consumer.poll(500):
                    where = (record.partition, record.offset)
                    if where in self.done:
                        self.again.append(where)
                    if record.offset % 7 == 3 and where not in self.released:
                        self.released.add(where)
                        consumer.acknowledge(record, AcknowledgeType.RELEASE)
                    else:
                        accepted.add(where)
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT)
                self.unanswered |= accepted
                with suppress(AcknowledgeFailed):
                    await consumer.commit()
                    self.unanswered -= accepted
                    self.done |= accepted

    async def until(self, count: int) -> None:
        while len(self.done) < count:
            await asyncio.sleep(0.05)


async def _until_nothing_is_left(admin: Admin) -> None:
    while True:
        with suppress(ClientError):
            offsets = await admin.share_groups.offsets(GROUP)
            if len(offsets) == PARTITIONS and all(one.lag == 0 for one in offsets.values()):
                return
        await asyncio.sleep(0.2)


async def _move(admin: Admin) -> None:
    """Let another broker lead each partition, and let it be elected."""
    where = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    replicas = {one: [(one.partition + shift) % 3 + 1 for shift in (1, 2, 0)] for one in where}
    await admin.replicas.reassign(replicas)
    while await admin.replicas.reassignments():
        await asyncio.sleep(0.1)
    await admin.replicas.elect(where)


def _create(bootstrap: str) -> None:
    # Each node leads a partition.
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([topic]).values():
        created.result(60)


async def _work(cluster: ProcessCluster, work: Work) -> None:
    async with Admin(cluster.bootstrap) as admin, Producer(cluster.bootstrap) as producer:
        await admin.configs.alter(ResourceType.GROUP, GROUP, {"share.auto.offset.reset": "earliest"})
        for number in range(RECORDS):
            await producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            workers = [group.create_task(work.go_on(cluster.bootstrap)) for _ in range(WORKERS)]
            troubles: list[Callable[[], Awaitable[None]]] = [
                lambda: _move(admin),
                lambda: asyncio.to_thread(cluster[2].kill),
                lambda: asyncio.to_thread(cluster[2].start),
            ]
            for share, trouble in enumerate(troubles, 1):
                await work.until(RECORDS * share // 5)
                await trouble()
            await _until_nothing_is_left(admin)
            for worker in workers:
                worker.cancel()


@pytest.mark.thorough(guard="tests/simulation/share_groups/test_share_crashes.py")
def test_what_is_done_stays_done_when_leaders_move(tmp_path: Path) -> None:
    work = Work()
    with ProcessCluster(tmp_path, settings=SETTINGS) as cluster:
        _create(cluster.bootstrap)
        asyncio.run(_work(cluster, work))
    assert work.again == [], "what was acknowledged is not delivered again"
    everything = {(number % PARTITIONS, number // PARTITIONS) for number in range(RECORDS)}
    assert work.done | work.unanswered == everything, "nothing is left out"
    assert len(work.released) > RECORDS // 10, "releases went through the moves as well"
