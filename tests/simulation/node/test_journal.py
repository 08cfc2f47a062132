"""A node writes a journal if it is told to, and only then."""

import pytest

from ottla import Admin
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.storage.read import ReadLimit
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

TOPIC = "__ottla_journal"
WHILE_MS = 10_000


@pytest.mark.parametrize("is_on", [True, False])
def test_a_journal_is_written_only_if_it_is_on(is_on: bool) -> None:
    simulation = Simulation(1)
    network = SimulatedNetwork(simulation)
    cluster = SimulatedCluster(simulation, network, 1, settings={"ottla.journal.enable": str(is_on).lower()})
    cluster.start()

    async def create() -> None:
        async with Admin(cluster.bootstrap) as admin:
            await admin.topics.create("orders", partitions=1)

    simulated_loop(simulation, network).run(create())
    simulation.run_for(WHILE_MS)
    node = cluster[1].node
    assert node is not None
    assert ("__ottla_journal" in node.broker.image.topics.names) is is_on


def test_what_a_node_saw_is_on_other_nodes_too() -> None:
    simulation = Simulation(2)
    network = SimulatedNetwork(simulation)
    cluster = SimulatedCluster(simulation, network, 3, settings={"ottla.journal.enable": "true"})
    cluster.start()

    async def create() -> None:
        async with Admin(cluster.bootstrap) as admin:
            await admin.topics.create("orders", partitions=3)

    simulated_loop(simulation, network).run(create())
    simulation.run_for(6 * WHILE_MS)
    node = cluster[1].node
    assert node is not None
    topic = node.broker.image.topics.find(TOPIC)
    assert topic is not None
    assert {record.replicas[0] for record in topic.partitions.values()} == {1, 2, 3}
    assert all(set(record.replicas) == {1, 2, 3} for record in topic.partitions.values())
    number = next(number for number, record in topic.partitions.items() if record.replicas[0] == 1)
    cluster[1].kill()
    simulation.run_for(3 * WHILE_MS)
    other = cluster[2].node
    assert other is not None
    topic = other.broker.image.topics.find(TOPIC)
    assert topic is not None
    assert topic.partitions[number].leader in (2, 3), "what node 1 saw can be read while it is down"
    copy = other.broker.partitions.find(TOPIC, number)
    assert copy is not None
    assert copy.log.log_end_offset > 0
    data = memoryview(copy.log.read(copy.log.log_start_offset, 1 << 20, ReadLimit.LOG_END).read())
    keys = [record.key for batch in iter_batches(data) for record in iter_batch_records(batch)]
    assert keys
    assert not [key for key in keys if key is None or b"-fetcher-" in key], "a follower is no client"


def test_a_full_disk_ends_no_node_because_of_the_journal() -> None:
    simulation = Simulation(3)
    network = SimulatedNetwork(simulation)
    cluster = SimulatedCluster(simulation, network, 1, settings={"ottla.journal.enable": "true"})
    cluster.start()

    async def create(*names: str) -> None:
        async with Admin(cluster.bootstrap) as admin:
            for name in names:
                await admin.topics.create(name, partitions=1)

    loop = simulated_loop(simulation, network)
    loop.run(create("orders"))
    simulation.run_for(WHILE_MS)
    node = cluster[1].node
    assert node is not None
    (partition,) = [one for one in node.broker.partitions if one.topic == TOPIC]
    end = partition.log.log_end_offset
    # The metadata log writes to the same disk. What is left is enough for it, not for the journal too.
    cluster[1].disk.capacity_bytes = cluster[1].disk.used_bytes() + 20_000
    for number in range(1_500):
        node.broker.journal.note(
            f"topic/{number}", "topic-created", topic=f"{number * 7919:x}" * 9, partitions=1
        )
        if number % 300 == 0:
            simulation.run_for(1_000)
    assert partition.log.volume.error is None
    assert partition.log.log_end_offset == end
    assert cluster[1].node is node
    cluster[1].disk.capacity_bytes = None
    node.broker.journal.note("topic/y", "topic-created", topic="y", partitions=1)
    simulation.run_for(WHILE_MS)
    assert partition.log.log_end_offset > end
