"""What was set while a node ran holds after a restart, before anything is done by it."""

from typing import Final

from ottla import Admin, Producer
from ottla.broker.limits.connection_limits import connection_limits
from ottla.broker.logs.log_configs import TopicSettings
from ottla.broker.logs.partition import Partition
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.config_kinds import ResourceType

TOPIC: Final = "orders"
RECORDS: Final = 20
FILE: Final = {
    "log.retention.ms": "1000",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
    "log.segment.bytes": "1048576",
    "log.cleaner.threads": "1",
}
FOR_ALL: Final = {
    "log.retention.ms": "-1",
    "min.insync.replicas": "2",
    "log.segment.bytes": "2097152",
    "message.max.bytes": "5000",
    "log.cleaner.threads": "2",
    "max.connections": "77",
    "ottla.scrub.interval.ms": "12345",
}
FOR_ONE: Final = {"message.max.bytes": "7000", "leader.replication.throttled.rate": "4321"}
OF_TOPIC: Final = {"segment.bytes": "3145728"}


class World:
    """A node whose file says one thing, and its dynamic configs another."""

    def __init__(self) -> None:
        self.simulation = Simulation(1)
        network = SimulatedNetwork(self.simulation)
        self.one = SimulatedNode(self.simulation, network, 1, FILE)
        self.loop = simulated_loop(self.simulation, network)
        self.one.start()
        self.loop.run(self._set_up())

    async def _set_up(self) -> None:
        async with Admin(self.one.bootstrap) as admin:
            await admin.topics.create(TOPIC, partitions=1)
            await admin.configs.alter(ResourceType.BROKER, "", FOR_ALL)
            await admin.configs.alter(ResourceType.BROKER, "1", FOR_ONE)
            await admin.configs.alter(ResourceType.TOPIC, TOPIC, OF_TOPIC)
        async with Producer(self.one.bootstrap, acks="1") as producer:
            for number in range(RECORDS):
                await producer.send_and_wait(TOPIC, b"%d" % number, partition=0)

    @property
    def partition(self) -> Partition:
        """The topic's only partition."""
        assert self.one.node is not None
        partition = self.one.node.broker.partitions.find(TOPIC, 0)
        assert partition is not None
        return partition

    def settings(self) -> tuple[object, ...]:
        """Everything that the configs decide, where it is used."""
        assert self.one.node is not None
        broker, partition = self.one.node.broker, self.partition
        limits = connection_limits(broker.config, broker.world.connections_max)
        assert broker.listeners.limits == limits
        assert self.one.node.parts.controller.listeners.limits == limits
        assert limits.connections_max == 77
        # A topic of one replica cannot ask for two in sync.
        found: TopicSettings = broker.partitions.settings_of(broker.image, TOPIC)
        assert found.in_sync_replicas_min == 2
        assert found.log == partition.log.config
        return (
            {key: broker.config.value_of(key) for key in (*FOR_ALL, *FOR_ONE)},
            found,
            broker.replication.sending.bytes_per_second,
        )


def test_dynamic_configs_of_every_level_hold_again_after_a_restart() -> None:
    it = World()
    before = it.settings()
    assert it.partition.log.config.segment_bytes == int(OF_TOPIC["segment.bytes"])

    it.one.stop()
    it.one.start()
    assert it.settings() == before

    it.one.cut_power()
    it.one.start()
    assert it.settings() == before


def test_retention_after_a_restart_obeys_what_was_set_for_all_brokers() -> None:
    it = World()
    it.one.stop()
    it.simulation.run_for(60_000)
    it.one.start()
    it.simulation.run_for(5_000)
    assert it.partition.log.log_start_offset == 0
    assert it.partition.log.log_end_offset == RECORDS
