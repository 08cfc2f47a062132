"""A node writes a journal if it is told to, and only then."""

import pytest

from ottla import Admin
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

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
