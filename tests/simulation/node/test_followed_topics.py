"""A registry follows its topic and that of its keys: neither waits because the other has nothing new."""

import asyncio
from typing import Any

from ottla.client.admin.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.cluster import Cluster
from ottla.client.security import cluster_for
from ottla.satellite.keys import InstanceKeys, KeyRecord
from ottla.satellite.topic import TopicReader, TopicWriter, ensure_topic
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation

SCHEMAS = "_schemas"
WRITES = 10


async def write_and_read_back(cluster: Cluster, admin: Admin) -> float:
    """Return how many seconds the writes took, all in all."""
    seen: list[Any] = []
    await cluster.start()
    keys = InstanceKeys(cluster, "_keys")
    await keys.start(admin)
    await keys.renew()
    await ensure_topic(admin, SCHEMAS)
    reader = TopicReader(cluster, SCHEMAS, seen.append)
    await reader.start()
    writer = TopicWriter(cluster, reader, "writer", [KeyRecord(b"opening", b"")])
    await writer.start()
    loop = asyncio.get_running_loop()
    before_s = loop.time()
    for number in range(WRITES):
        await writer.append([KeyRecord(b"%d" % number, b"schema")])
    took_s = loop.time() - before_s
    assert len(seen) == WRITES + 1
    assert len(keys.current()) == 1
    await reader.stop()
    await keys.stop()
    await cluster.close()
    return took_s


def test_what_is_written_is_read_back_though_nobody_renews_keys() -> None:
    simulation = Simulation(7)
    network = SimulatedNetwork(simulation)
    node = SimulatedNode(simulation, network)
    node.start()

    async def main() -> float:
        properties = {"bootstrap.servers": node.bootstrap}
        async with Admin(properties=properties) as admin:
            return await write_and_read_back(cluster_for(AdminSettings.of(properties)), admin)

    # In simulated time. A fetch without news waits for half a second.
    assert simulated_loop(simulation, network).run(main()) < 0.5
