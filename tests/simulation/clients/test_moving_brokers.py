"""Brokers that are found at another address than before."""

import asyncio

from ottla.client.admin import Admin
from ottla.client.connection import Address
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation


def test_a_coordinator_that_moved_is_found_though_no_topic_is_asked_for() -> None:
    simulation = Simulation(1)
    network = SimulatedNetwork(simulation)
    cluster = SimulatedCluster(simulation, network, 3, settings={"offsets.topic.num.partitions": "1"})
    loop = simulated_loop(simulation, network)
    cluster.start()

    async def story() -> None:
        async with Admin(cluster.bootstrap, retry_backoff_ms=20, default_api_timeout_ms=20_000) as admin:
            assert not await admin.groups.list()
            known = admin._cluster
            coordinator = await known.coordinator(0, "g")
            # As if what was learned before were about brokers that have all moved since, but for one.
            stays = next(node_id for node_id in known.topology.brokers if node_id != coordinator)
            for (node_id, _), connection in known._connections.items():
                if node_id != stays:
                    await connection.close()
            await known.connection(stays)
            for node_id in known.topology.brokers.keys() - {stays}:
                known.topology.brokers[node_id] = Address("10.0.0.200", 9092)  # type: ignore[index]
            async with asyncio.timeout(30):
                assert not await admin.group_offsets.list("g")

    loop.run(story())
