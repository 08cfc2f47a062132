"""A node that stops lets its clients go at once, however much they ask for meanwhile."""

import asyncio
from typing import Final

from ottla import Admin, Consumer, Producer
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation

TOPIC: Final = "orders"
CONSUMERS: Final = 3


def test_a_node_does_not_wait_for_a_moment_in_which_nobody_fetches() -> None:
    simulation = Simulation(1)
    network = SimulatedNetwork(simulation)
    one = SimulatedNode(simulation, network, 1, {"controlled.shutdown.enable": "false"})
    loop = simulated_loop(simulation, network)
    one.start()
    fetching = 0

    async def fetch() -> None:
        nonlocal fetching
        async with Consumer(one.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            while not await consumer.poll(timeout_ms=100):
                pass
            fetching += 1
            while one.is_on:
                await consumer.poll(timeout_ms=100)

    async def produce() -> None:
        async with Producer(one.bootstrap) as producer:
            await producer.send_and_wait(TOPIC, b"coffee")

    async def story() -> int:
        async with Admin(one.bootstrap) as admin:
            await admin.topics.create(TOPIC, partitions=1)
        await produce()
        consumers = [asyncio.create_task(fetch()) for _ in range(CONSUMERS)]
        while fetching < CONSUMERS:
            await asyncio.sleep(0.1)
        # While one write waits for the disk, all others fetch again.
        one.machine.disk_slowness = 400
        producing = asyncio.create_task(produce())
        await asyncio.sleep(0.2)
        began_us = simulation.now_us
        one.begin_stop()
        while one.is_on:
            await asyncio.sleep(0.01)
        stopped_us = simulation.now_us
        for task in (*consumers, producing):
            task.cancel()
        await asyncio.gather(*consumers, producing, return_exceptions=True)
        return stopped_us - began_us

    took_us = loop.run(story())
    assert took_us < 3_000_000, "it would wait for 5 seconds"
