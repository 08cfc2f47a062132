"""A disk that is nearly full takes no records of producers, and everything that makes room goes on."""

from collections.abc import Awaitable, Callable
from typing import Any

from ottla import Admin, Consumer, Producer
from ottla.client.errors import BrokerError
from ottla.model.ids import TopicPartition
from ottla.storage.log import Log
from ottla.testing.simulation.client_loop import SimulatedLoop, simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

LARGE = b"x" * 20_000
MINUTES_MS = 120_000


class World:
    """A cluster, clients of it, and disks that can be filled."""

    def __init__(self, nodes: int, **settings: str) -> None:
        self.simulation = Simulation(nodes)
        self.network = SimulatedNetwork(self.simulation)
        self.cluster = SimulatedCluster(self.simulation, self.network, nodes, settings=settings)
        self.cluster.start()
        self.loop: SimulatedLoop = simulated_loop(self.simulation, self.network)

    def admin(self, work: Callable[[Admin], Awaitable[Any]]) -> None:
        async def run() -> None:
            async with Admin(self.cluster.bootstrap) as admin:
                await work(admin)

        self.loop.run(run())

    def produce(self, topic: str, count: int = 1, **properties: str) -> None:
        async def run() -> None:
            async with Producer(self.cluster.bootstrap, properties=properties) as producer:
                for _ in range(count):
                    await producer.send_and_wait(topic, LARGE, partition=0)

        self.loop.run(run())

    def is_refused(self, topic: str, **properties: str) -> bool:
        """Say whether a producer is refused, by an error that says what to do."""
        try:
            self.produce(topic, 1, **properties)
        except BrokerError as error:
            return error.error_code is ErrorCode.POLICY_VIOLATION and "nearly full" in str(error)
        return False

    def read(self, topic: str, group: str, count: int) -> None:
        """Read records and commit them."""

        async def run() -> None:
            settings = {"auto.offset.reset": "earliest"}
            async with Consumer(self.cluster.bootstrap, group_id=group, properties=settings) as consumer:
                consumer.subscribe([topic])
                got = 0
                while got < count:
                    got += len(await consumer.poll())
                await consumer.commit()

        self.loop.run(run())

    def fill(self, one: SimulatedNode) -> None:
        """Leave so little that it is below half of the reserve, which is a tenth of the disk."""
        used = one.disk.used_bytes()
        one.disk.capacity_bytes = used + used // 25
        self.simulation.run_for(3_000)

    def log_of(self, one: SimulatedNode, topic: str) -> Log:
        node = one.node
        assert node is not None
        partition = node.broker.partitions.find(topic, 0)
        assert partition is not None
        return partition.log


def test_a_full_disk_has_a_way_out() -> None:
    world = World(1)
    (one,) = world.cluster
    world.admin(lambda admin: admin.topics.create("orders", partitions=1))
    world.admin(lambda admin: admin.topics.create("old", partitions=1, configs={"file.delete.delay.ms": "0"}))
    world.produce("old", 200)
    world.produce("orders", 3)
    world.fill(one)
    assert world.is_refused("orders")
    assert world.is_refused("orders", **{"enable.idempotence": "false"})
    # A restart changes nothing: it needs no more room than is left.
    one.kill()
    one.start()
    world.simulation.run_for(10_000)
    assert world.is_refused("orders")
    world.read("orders", "readers", 3)
    world.admin(lambda admin: admin.topics.delete("old"))
    world.simulation.run_for(MINUTES_MS)
    assert not world.is_refused("orders")
    assert world.log_of(one, "orders").log_end_offset == 4
    assert world.log_of(one, "orders").volume.error is None


def test_lower_retention_makes_room_without_waiting_for_the_next_round() -> None:
    world = World(1, **{"log.retention.check.interval.ms": "3600000", "log.initial.task.delay.ms": "3600000"})
    (one,) = world.cluster
    configs = {"segment.bytes": "1048576", "file.delete.delay.ms": "0", "segment.ms": "1000"}
    world.admin(lambda admin: admin.topics.create("old", partitions=1, configs=configs))
    world.produce("old", 200)
    world.simulation.run_for(2_000)
    world.produce("old", 1)
    world.fill(one)
    assert world.is_refused("old")
    world.admin(lambda admin: admin.configs.alter(ResourceType.TOPIC, "old", {"retention.ms": "1000"}))
    world.simulation.run_for(30_000)
    assert not world.is_refused("old")


def test_a_node_that_is_nearly_full_copies_no_records_and_stays() -> None:
    world = World(3, **{"replica.lag.time.max.ms": "3000"})
    world.admin(
        lambda admin: admin.topics.create(
            "orders", partitions=1, replication_factor=3, configs={"min.insync.replicas": "2"}
        )
    )
    world.produce("orders", 200)
    node = world.cluster[1].node
    assert node is not None
    partition = node.broker.partitions.find("orders", 0)
    assert partition is not None
    follower = next(one for one in world.cluster if one.node_id != partition.leader_id)
    world.fill(follower)
    end = world.log_of(follower, "orders").log_end_offset
    world.produce("orders", 30)
    world.simulation.run_for(10_000)
    copied = world.log_of(follower, "orders")
    assert copied.volume.error is None
    assert copied.log_end_offset == end
    leader = world.cluster[partition.leader_id].node
    assert leader is not None
    led = leader.broker.partitions.find("orders", 0)
    assert led is not None
    assert follower.node_id not in led.in_sync
    follower.disk.capacity_bytes = None
    world.simulation.run_for(10_000)
    assert copied.log_end_offset == led.log.log_end_offset
    assert TopicPartition("orders", 0) == copied.topic_partition


def test_without_a_reserve_a_full_disk_takes_records_until_nothing_is_left() -> None:
    world = World(1, **{"ottla.disk.reserve.bytes": "0"})
    (one,) = world.cluster
    world.admin(lambda admin: admin.topics.create("orders", partitions=1))
    world.produce("orders", 100)
    world.fill(one)
    assert not world.is_refused("orders")
