"""How fast a simulated cluster is: three nodes, 100 operations a second, and nothing that breaks.

    python -m tests.simulation.cluster.speed [SECONDS]

An operation is a record that is written with acks=all, and read by a member of a group. The nodes are also
measured without any client. The time is that of the processor, so that other programs on the machine count
less. Starting is not measured, and garbage is not collected, as in other runs.
"""

import asyncio
import sys
import time
from typing import Final

from tests.simulation.cluster.plan import quick_settings
from tests.simulation.cluster.rules.invariants import Invariants
from tests.simulation.cluster.run import keeping_garbage, quietly

from ottla import Admin, Consumer, Producer
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

SECONDS: Final = 20
OPERATIONS_PER_SECOND: Final = 100
WARM_UP_SECONDS: Final = 3
TOPIC: Final = "measured"


class Measured:
    """A cluster that is measured."""

    def __init__(self) -> None:
        self.simulation = Simulation(1)
        network = SimulatedNetwork(self.simulation)
        self.cluster = SimulatedCluster(self.simulation, network, settings=quick_settings())
        self.loop = simulated_loop(self.simulation, network)
        self.cluster.start()
        Invariants(self.cluster, lambda _: None).begin()
        self.loop.run(self._create())

    def measure_idle(self, seconds: int) -> float:
        """Return how many seconds without any client pass in a real one."""
        # Nodes import what they need rarely soon after the start.
        self.simulation.run_for(1000 * WARM_UP_SECONDS)
        began = time.process_time()
        self.simulation.run_for(1000 * seconds)
        return seconds / (time.process_time() - began)

    def measure_work(self, seconds: int) -> float:
        """Return how many seconds with clients pass in a real one."""
        return self.loop.run(self._work(seconds))

    async def _create(self) -> None:
        async with Admin(self.cluster.bootstrap) as admin:
            await admin.topics.create(TOPIC, partitions=3)

    async def _work(self, seconds: int) -> float:
        async with (
            Producer(self.cluster.bootstrap, linger_ms=0) as producer,
            Consumer(self.cluster.bootstrap, group_id="readers", auto_offset_reset="earliest") as consumer,
        ):
            consumer.subscribe([TOPIC])
            await _write_and_read(producer, consumer, WARM_UP_SECONDS)
            began = time.process_time()
            await _write_and_read(producer, consumer, seconds)
            return seconds / (time.process_time() - began)


async def _write_and_read(producer: Producer, consumer: Consumer, seconds: int) -> None:
    """Write at a steady rate, and read everything."""
    operations = seconds * OPERATIONS_PER_SECOND

    async def write() -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        under_way = []
        for number in range(operations):
            await asyncio.sleep(start + number / OPERATIONS_PER_SECOND - loop.time())
            under_way.append(await producer.send(TOPIC, b"%d" % number, partition=number % 3))
        await asyncio.gather(*under_way)

    async def read() -> None:
        left = operations
        while left > 0:
            left -= len(await consumer.poll(timeout_ms=1000))

    await asyncio.gather(write(), read())


def main() -> None:
    """Measure, and print."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with quietly(), keeping_garbage():
        measured = Measured()
        print(
            f"three nodes without clients: {measured.measure_idle(seconds):.1f} simulated seconds per second"
        )
        print(
            f"three nodes, {OPERATIONS_PER_SECOND} operations a second: "
            f"{measured.measure_work(seconds):.1f} simulated seconds per second"
        )


if __name__ == "__main__":
    main()
