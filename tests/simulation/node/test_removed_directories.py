"""A log directory that a node is not given any more takes its replicas with it, and the node knows that."""

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulation.cluster.plan import quick_settings
from tests.simulation.node import test_failed_directories as failed_directories

from ottla import Admin, Consumer, Producer
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import DATA, SimulatedNode
from ottla.testing.simulation.simulation import Simulation

TOPIC: Final = "orders"
SECOND: Final = "/data2"
PARTITIONS: Final = 4
RECORDS: Final = 5
NO_LEADER: Final = -1


class World:
    """A cluster whose nodes have two log directories, and records in each."""

    def __init__(self) -> None:
        self.simulation = Simulation(1)
        network = SimulatedNetwork(self.simulation)
        settings = {**quick_settings(), "log.dirs": f"{DATA},{SECOND}"}
        self.cluster = SimulatedCluster(self.simulation, network, settings=settings)
        self.loop = simulated_loop(self.simulation, network)
        self.cluster.start()
        self.loop.run(self._fill())

    async def _fill(self) -> None:
        async with Admin(self.cluster.bootstrap) as admin:
            await admin.topics.create(TOPIC, assignment=dict.fromkeys(range(PARTITIONS), (1, 2)))
        async with Producer(self.cluster.bootstrap) as producer:
            for number in range(RECORDS):
                for index in range(PARTITIONS):
                    await producer.send_and_wait(TOPIC, b"%d" % number, partition=index)

    def places(self, one: SimulatedNode) -> dict[int, str]:
        """Return where a node has the topic's logs."""
        assert one.node is not None
        return {each.index: each.log.path for each in one.node.broker.partitions if each.topic == TOPIC}

    def leaders(self) -> dict[int, int]:
        """Return who leads what."""
        node = self.cluster[3].node
        assert node is not None
        topic = node.broker.image.topics.find(TOPIC)
        assert topic is not None
        return {number: record.leader for number, record in topic.partitions.items()}

    async def count(self) -> dict[int, int]:
        """Return how many records can be read."""
        async with Consumer(self.cluster.bootstrap) as consumer:
            partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
            ends = await consumer.end_offsets(partitions)
            return {where.partition: end for where, end in ends.items()}


@pytest.mark.parametrize("end", [SimulatedNode.stop, SimulatedNode.kill])
def test_a_node_that_lacks_a_directory_is_no_eligible_leader(
    end: Callable[[SimulatedNode], None], caplog: pytest.LogCaptureFixture
) -> None:
    it = World()
    first, second = it.cluster[1], it.cluster[2]
    there = {index for index, path in it.places(second).items() if path.startswith(f"{SECOND}/")}
    assert 0 < len(there) < PARTITIONS
    end(second)
    it.simulation.run_until(lambda: set(it.leaders().values()) == {first.node_id})
    first.stop()

    second.settings["log.dirs"] = DATA
    second.start()
    it.simulation.run_for(5_000)
    assert it.places(second).keys() == set(range(PARTITIONS)), "it begins again in the directory that it has"
    assert set(it.leaders().values()) == {NO_LEADER}
    assert f"{len(there)} replicas, such as orders-{min(there)}, lay in directories that" in caplog.text
    first.start()
    it.simulation.run_until(lambda: set(it.leaders().values()) == {first.node_id})
    assert it.loop.run(it.count()) == dict.fromkeys(range(PARTITIONS), RECORDS)


def test_records_are_back_when_a_directory_is_named_again() -> None:
    it = failed_directories.World()
    before = it.places()
    it.one.stop()
    it.one.settings["log.dirs"] = DATA
    it.one.start()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert min(it.ends().values()) == 0, "nobody else has what was there"

    it.one.stop()
    it.one.settings["log.dirs"] = f"{DATA},{SECOND}"
    it.one.start()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert it.places() == before
    assert set(it.ends().values()) == {RECORDS}
