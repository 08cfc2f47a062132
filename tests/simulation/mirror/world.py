"""Two simulated clusters, and mirrors between them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError
from ottla.client.fetching import read_range
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.client.producer import Producer
from ottla.client.security import cluster_for
from ottla.mirror.link import Link
from ottla.mirror.mirror_maker import read_links
from ottla.mirror.mirroring import Mirroring
from ottla.model.ids import TopicPartition
from ottla.records.batch import LEADER_EPOCH_OFFSET, iter_batches
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

T = TypeVar("T")

WAIT_S: Final = 120
_EVENTS_MAX: Final = 60_000
"""Whoever goes round in circles is noticed. The longest story has a tenth of it."""
_SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1500",
}
_TARGET_ID: Final = "b3R0bGEtc2ltdWxhdGVkMg"


class TwoClusters:
    """A source and a target, whose clients share one loop."""

    def __init__(
        self, source_nodes: int = 1, target_nodes: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        self.simulation = Simulation(1)
        self.simulation.events_max = _EVENTS_MAX
        network = SimulatedNetwork(self.simulation)
        settings = {**_SETTINGS, **(settings or {})}
        self.source = SimulatedCluster(self.simulation, network, source_nodes, 1, settings)
        self.target = SimulatedCluster(
            self.simulation, network, target_nodes, 1, settings, first_id=101, cluster_id=_TARGET_ID
        )
        self._loop = simulated_loop(self.simulation, network)
        for cluster in (self.source, self.target):
            cluster.start()

    def run(self, story: Callable[["Clients"], Coroutine[Any, Any, T]]) -> T:
        """Let a story happen."""
        return self._loop.run(self._told(story))

    async def _told(self, story: Callable[["Clients"], Coroutine[Any, Any, T]]) -> T:
        async with (
            Admin(self.source.bootstrap) as source,
            Admin(self.target.bootstrap) as target,
        ):
            return await story(Clients(self, source, target))


class Clients:
    """What a story has: an admin of each cluster, and mirrors."""

    def __init__(self, clusters: TwoClusters, source: Admin, target: Admin) -> None:
        self.clusters = clusters
        self.source = source
        self.target = target
        self.source_bootstrap = clusters.source.bootstrap
        self.target_bootstrap = clusters.target.bootstrap

    def link(self, **options: Any) -> Link:
        """Return a link for exact copies."""
        return Link(
            **{
                "source_name": "there",
                "source": {"bootstrap.servers": self.source_bootstrap},
                "target": {"bootstrap.servers": self.target_bootstrap},
                "refresh_s": 1.0,
                **options,
            }
        )

    def makers_links(self, properties: Mapping[str, str] | None = None) -> list[Link]:
        """Return links in MirrorMaker 2's way, from A, the source, to B."""
        quick = ("refresh.topics", "refresh.groups", "emit.checkpoints", "sync.group.offsets")
        return read_links(
            {
                "clusters": "A,B",
                "A.bootstrap.servers": self.source_bootstrap,
                "B.bootstrap.servers": self.target_bootstrap,
                "A->B.enabled": "true",
                "B->A.enabled": "false",
                "sync.group.offsets.enabled": "true",
                **{f"{name}.interval.seconds": "1" for name in quick},
                **(properties or {}),
            }
        )

    @asynccontextmanager
    async def mirroring(self, link: Link) -> AsyncIterator[Mirroring]:
        """Mirror meanwhile."""
        mirroring, stop = Mirroring(link), asyncio.Event()
        work = asyncio.create_task(mirroring.run(stop))
        try:
            yield mirroring
        finally:
            stop.set()
            await work


@asynccontextmanager
async def client_of(bootstrap: str) -> AsyncIterator[Cluster]:
    """Know a cluster for the time being."""
    cluster = cluster_for(AdminSettings.of({"bootstrap.servers": bootstrap}))
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


async def until(holds: Callable[[], Awaitable[bool]], explain: Callable[[], object] = str) -> None:
    """Wait until something holds. Clusters may be away meanwhile. `explain` says why it does not hold."""
    error: ClientError | None = None
    try:
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    if await holds():
                        return
                    error = None
                except ClientError as raised:
                    error = raised
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"it did not come to hold in time ({error!r}). {explain()}") from None


async def write(bootstrap: str, where: TopicPartition, values: Sequence[bytes], **options: Any) -> None:
    """Write records, each in a batch of its own."""
    async with Producer(bootstrap, **options) as producer:
        for value in values:
            await (await producer.send(where.topic, value, key=b"k" + value, partition=where.partition))


async def write_transaction(
    bootstrap: str, where: TopicPartition, values: Sequence[bytes], commits: bool
) -> None:
    """Write records in one transaction."""
    async with Producer(bootstrap, transactional_id=str(where)) as producer:
        producer.begin_transaction()
        for value in values:
            await producer.send(where.topic, value, partition=where.partition)
        await producer.flush()
        await (producer.commit_transaction() if commits else producer.abort_transaction())


@asynccontextmanager
async def open_transaction(bootstrap: str, where: TopicPartition, value: bytes) -> AsyncIterator[None]:
    """Have a transaction open meanwhile, with one record."""
    async with Producer(bootstrap, transactional_id=f"open {where}") as producer:
        producer.begin_transaction()
        await producer.send(where.topic, value, partition=where.partition)
        await producer.flush()
        yield
        await producer.abort_transaction()


async def content(bootstrap: str, where: TopicPartition) -> tuple[int, int, bytes]:
    """Return where a partition starts and ends, and its batches without their leader epochs."""
    async with client_of(bootstrap) as cluster:
        start = (await list_offsets(cluster, {where: EARLIEST}))[where].offset
        end = (await list_offsets(cluster, {where: LATEST}))[where].offset
        found = bytearray()
        async for piece in read_range(cluster, where, start, end):
            for batch in iter_batches(piece.records):
                view = batch.view
                found += bytes(view[:LEADER_EPOCH_OFFSET]) + bytes(view[LEADER_EPOCH_OFFSET + 4 :])
        return start, end, bytes(found)


async def values(bootstrap: str, where: TopicPartition, offset: int = 0) -> list[bytes | None]:
    """Return the values that a reader of committed records finds from an offset on."""
    found: list[bytes | None] = []
    async with Consumer(
        bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
    ) as consumer:
        if where not in (await consumer.partitions_for(where.topic) or ()):
            return found
        end = (await consumer.end_offsets([where]))[where]
        consumer.assign([where])
        consumer.seek(where, offset)
        while await consumer.position(where) < end:
            found += [record.value for record in await consumer.poll(500)]
    return found


async def are_equal(clients: Clients, where: TopicPartition, copy: TopicPartition | None = None) -> bool:
    """Say whether a partition of the target is an exact copy."""
    ours = await content(clients.target_bootstrap, copy or where)
    return ours == await content(clients.source_bootstrap, where)


async def commit(admin: Admin, group: str, where: TopicPartition, offset: int) -> None:
    """Commit for a group without members."""
    (await admin.group_offsets.alter(group, {where: offset})).check()


async def committed(admin: Admin, group: str, partitions: Collection[TopicPartition]) -> list[int | None]:
    """Return what a group has committed."""
    found = await admin.group_offsets.list(group)
    return [found[where].offset if where in found else None for where in partitions]
