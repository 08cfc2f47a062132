"""A whole node and real clients in a simulated world, with power cuts, under one seed.

    python -m tests.simulation.node.run SEED [FILE]      prints the trace; writes its lines to FILE

Producers, transactions and groups of both kinds work at the same time. Now and then the power of the node is
cut, sometimes in the middle of a write, and comes back. At the end everything is read from the beginning, and
compared with what was acknowledged.
"""

import asyncio
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from ottla import Admin, Consumer, Producer
from ottla.client.errors import ClientError
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation

SETTINGS: Final = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "2000",
    "log.cleaner.backoff.ms": "1000",
}
ORDERS: Final = "orders"
TOTALS: Final = "totals"
LATEST: Final = "latest"
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "segment.ms": "700",
    "min.cleanable.dirty.ratio": "0.01",
}


class Wrong(Exception):
    """Something that must hold does not."""


def must(holds: bool, complaint: str) -> None:
    """Complain if something does not hold that must."""
    if not holds:
        raise Wrong(complaint)


class Outcome(NamedTuple):
    """What a run was like."""

    trace: str
    requests: int
    power_cuts: int
    cleaned_rounds: int
    simulated_s: float
    cpu_s: float


class Run:
    """One run of the workload."""

    def __init__(self, seed: int, records: int = 600, cuts: int = 3, keeps_lines: bool = False) -> None:
        self.simulation = Simulation(seed, keeps_lines)
        self.network = SimulatedNetwork(self.simulation)
        self.node = SimulatedNode(self.simulation, self.network, 1, SETTINGS)
        self.loop = simulated_loop(self.simulation, self.network)
        self._rng = Random(f"workload {seed}")
        self._records = records
        self._cuts = cuts
        self._is_over = False
        self._acknowledged: dict[tuple[str, int], dict[int, bytes]] = {}
        self._committed: list[bytes] = []
        self._aborted: list[bytes] = []
        self._unclear: list[bytes] = []
        self._read: dict[str, Counter[bytes]] = {}
        self.requests = 0
        self.power_cuts = 0
        self.cleaned_rounds = 0

    def run(self) -> Outcome:
        """Run to the end, and check what is there then. Raises `Wrong` if something is."""
        began = time.process_time()
        self.node.start()
        self.loop.run(self.work())
        self.loop.run(self.check())
        self._count()
        self.node.stop()
        return Outcome(
            self.simulation.trace,
            self.requests,
            self.power_cuts,
            self.cleaned_rounds,
            self.simulation.now_us / 1_000_000,
            time.process_time() - began,
        )

    # The workload

    async def work(self) -> None:
        """Let all clients work until everything is written and read."""
        async with Admin(self.node.bootstrap) as admin:
            await admin.topics.create(ORDERS, partitions=3)
            await admin.topics.create(TOTALS, partitions=2)
            await admin.topics.create(LATEST, partitions=1, configs=COMPACTED)
        readers = [
            asyncio.create_task(self._consume("classic")),
            asyncio.create_task(self._consume("consumer")),
        ]
        faults = asyncio.create_task(self._break())
        await asyncio.gather(
            self._produce("one", ORDERS),
            self._produce("two", ORDERS),
            self._produce("three", LATEST),
            self._transact(),
            self._come_and_go(),
        )
        self._is_over = True
        await faults
        await asyncio.gather(*readers)

    async def _produce(self, name: str, topic: str) -> None:
        async with Producer(self.node.bootstrap, linger_ms=0) as producer:
            for number in range(self._records):
                value = f"{name} {number}".encode()
                sent = await producer.send_and_wait(topic, value, key=b"%d" % (number % 10))
                self._acknowledged.setdefault((topic, sent.partition), {})[sent.offset] = value
                await asyncio.sleep(self._rng.uniform(0, 0.01))

    async def _transact(self) -> None:
        number = 0
        while number < self._records // 3:
            try:
                async with Producer(self.node.bootstrap, transactional_id="t", linger_ms=0) as producer:
                    while number < self._records // 3:
                        await self._transact_once(producer, number)
                        number += 1
                        await asyncio.sleep(self._rng.uniform(0, 0.02))
            except ClientError:
                # What became of it is not known. The next life of the producer ends it one way or the other.
                self._unclear.append(b"transaction %d" % number)
                number += 1

    async def _transact_once(self, producer: Producer, number: int) -> None:
        value = b"transaction %d" % number
        producer.begin_transaction()
        for part in range(2):
            await producer.send(TOTALS, value, partition=part)
        if self._rng.random() < 0.2:
            await producer.abort_transaction()
            self._aborted.append(value)
        else:
            await producer.commit_transaction()
            self._committed.append(value)

    async def _consume(self, protocol: str) -> None:
        """Read in a group. The member leaves and comes back now and then."""
        read = self._read[protocol] = Counter()
        expected = 2 * self._records
        while len(read) < expected:
            try:
                await self._consume_for_a_while(protocol, read, expected)
            except ClientError:
                # The node was off when the consumer began, or for too long.
                await asyncio.sleep(0.1)

    async def _consume_for_a_while(self, protocol: str, read: Counter[bytes], expected: int) -> None:
        async with Consumer(
            self.node.bootstrap,
            group_id=f"group {protocol}",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
        ) as consumer:
            consumer.subscribe([ORDERS])
            for _ in range(200):
                for record in await consumer.poll(timeout_ms=100):
                    assert record.value is not None
                    read[record.value] += 1
                if len(read) >= expected:
                    break

    async def _come_and_go(self) -> None:
        """Create topics and delete them."""
        async with Admin(self.node.bootstrap) as admin:
            number = 0
            while self.power_cuts < self._cuts or number < 3:
                name = f"short-lived-{number}"
                number += 1
                try:
                    await admin.topics.create(name, partitions=2)
                    await asyncio.sleep(self._rng.uniform(0.1, 0.5))
                    await admin.topics.delete(name)
                except ClientError:
                    # It was done before the answer was lost.
                    await asyncio.sleep(0.1)

    async def _break(self) -> None:
        """Cut the power now and then, and bring it back."""
        while self.power_cuts < self._cuts:
            await asyncio.sleep(self._rng.uniform(0.5, 2.0))
            self._count()
            if self._rng.random() < 0.5:
                self.node.cut_power()
            else:
                self.node.disk.cut_power_after(self._rng.randrange(1, 20))
                while self.node.is_on:
                    await asyncio.sleep(0.01)
            self.power_cuts += 1
            await asyncio.sleep(self._rng.uniform(0.01, 1.0))
            self.node.switch_on()
            while self.node.node is None:
                must(self.node.failure is None, f"the node does not start: {self.node.failure}")
                await asyncio.sleep(0.01)

    def _count(self) -> None:
        """Count what the node has done before it is gone."""
        if self.node.node is not None:
            self.requests += sum(route.requests for route in self.node.node.broker.routes)
            self.cleaned_rounds += self.node.node.housekeeping.cleaner.cleaned_rounds

    # What must hold

    async def check(self) -> None:
        """Compare what is there with what was acknowledged."""
        await self._check_orders()
        await self._check_totals()
        await self._check_latest()

    async def _check_orders(self) -> None:
        """Everything acknowledged is there, once, where it was said to be."""
        there: dict[tuple[str, int], dict[int, bytes]] = {}
        values: Counter[bytes] = Counter()
        for where, offset, value in await self._read_all(ORDERS):
            there.setdefault((ORDERS, where), {})[offset] = value
            values[value] += 1
        for place, acknowledged in self._acknowledged.items():
            if place[0] == ORDERS:
                missing = {
                    at: value for at, value in acknowledged.items() if there.get(place, {}).get(at) != value
                }
                must(not missing, f"{place} has lost what was acknowledged: {missing}")
        twice = [value for value, count in values.items() if count > 1]
        must(not twice, f"written twice: {twice}")
        for protocol, read in self._read.items():
            must(set(read) == set(values), f"the {protocol} group did not read everything")

    async def _check_totals(self) -> None:
        """A transaction is there in both partitions or in none."""
        seen: dict[int, list[bytes]] = {0: [], 1: []}
        for partition, _, value in await self._read_all(TOTALS):
            seen[partition].append(value)
        must(seen[0] == seen[1], "a transaction is there in part")
        visible = set(seen[0])
        must(len(visible) == len(seen[0]), "a transaction is there twice")
        must(visible >= set(self._committed), f"lost: {set(self._committed) - visible}")
        must(not visible & set(self._aborted), "something aborted can be read")
        must(visible <= set(self._committed) | set(self._unclear), "something that nobody wrote can be read")

    async def _check_latest(self) -> None:
        """Of each key at least the last value is left."""
        left = {value for _, _, value in await self._read_all(LATEST)}
        last = {f"three {number}".encode() for number in range(self._records - 10, self._records)}
        must(last <= left, f"compaction took {last - left}")

    async def _read_all(self, topic: str) -> list[tuple[int, int, bytes]]:
        async with Admin(self.node.bootstrap) as admin:
            description = await admin.topics.describe(topic)
        found: list[tuple[int, int, bytes]] = []
        async with Consumer(
            self.node.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            consumer.assign(description.topic_partitions)
            quiet = 0
            while quiet < 3:
                records = await consumer.poll(timeout_ms=500)
                quiet = 0 if records else quiet + 1
                for record in records:
                    assert record.value is not None
                    found.append((record.partition, record.offset, record.value))
        return found


def main() -> None:
    """Run one seed."""
    logging.basicConfig(level=logging.CRITICAL)
    run = Run(int(sys.argv[1]), keeps_lines=len(sys.argv) > 2)
    outcome = run.run()
    if run.simulation.lines is not None:
        Path(sys.argv[2]).write_text("\n".join(run.simulation.lines))
    print(outcome.trace)
    print(
        f"{outcome.requests} requests, {outcome.power_cuts} power cuts, "
        f"{outcome.cleaned_rounds} rounds of compaction, {outcome.simulated_s:.1f} simulated seconds "
        f"in {outcome.cpu_s:.1f} s of CPU: {outcome.simulated_s / outcome.cpu_s:.1f} per second",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
