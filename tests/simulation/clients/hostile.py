"""Clients in a world that is against them: `make sim WHAT=clients`.

Connections break before, in the middle of and after answers, lead nowhere or are refused. Leaders move, nodes
are killed and come back, partitions are added, batches are too large for their topic. Buffers have room for a
few records, callers give up in the middle of their calls. Whatever happens, what was acknowledged is there
once and in order, transactions are whole, a group reads everything, nothing hangs, and at the end nothing is
left behind.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any, Final, NamedTuple

from tests.simulation.meetings import Met

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.client.producer.batch import SentRecord
from ottla.client.producer.transactions import Fenced
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

_SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
}
_CLIENT: Final[dict[str, Any]] = {
    "request_timeout_ms": 1_500,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 300,
    "metadata_max_age_ms": 2_000,
    "socket_connection_setup_timeout_ms": 1_000,
}
_ADMIN: Final = {name: value for name, value in _CLIENT.items() if name != "metadata_max_age_ms"}
_PLAIN: Final = "plain"
_ACCOUNTS: Final = "accounts"
# Batches of a few records are larger than this, and are split.
_BATCH_BYTES_MAX: Final = "700"
_HANGS_S: Final = 400
_QUIET_S: Final = 40
_EVENTS_MAX: Final = 3_000_000


FAULTS: Final = (
    "reset",
    "give_up",
    "lose_track",
    "reject",
    "cut",
    "lose_answers",
    "slow_down",
    "kill",
    "add_partition",
)
EVENTS: Final = (
    "a record was acknowledged",
    "a record failed",
    "a send was cut off",
    "a transaction was committed",
    "a transaction was cut off",
    "a member was late",
)


class Wrong(AssertionError):
    """Something that must hold does not."""


def must(holds: bool, complaint: str) -> None:
    """Complain if something does not hold that must."""
    if not holds:
        raise Wrong(complaint)


class Outcome(NamedTuple):
    """What a run was like."""

    simulated_s: float
    met: Met


class World:
    """One seed."""

    def __init__(self, seed: int, records: int = 60) -> None:
        self.random = Random(f"hostile {seed}")
        self.simulation = Simulation(seed)
        self.simulation.events_max = _EVENTS_MAX
        self.network = SimulatedNetwork(self.simulation)
        self.cluster = SimulatedCluster(self.simulation, self.network, 3, settings=_SETTINGS)
        self.loop = simulated_loop(self.simulation, self.network)
        self.met: Met = Counter()
        self._records = records
        self._host = self.loop.machine.host
        self._is_over = False
        self._acknowledged: dict[bytes, tuple[int, int]] = {}
        """With partition and offset."""
        self._refused: set[bytes] = set()
        """Not taken in: these must not be there at all."""
        self._committed: list[bytes] = []
        self._aborted: list[bytes] = []
        self._read: dict[str, set[bytes | None]] = {}
        self._members: dict[tuple[str, int], Consumer] = {}

    def run(self) -> Outcome:
        """Run to the end, and check what is there then."""
        self.cluster.start()
        try:
            self.loop.run(self._whole(), within_ms=3_600_000)
        finally:
            self._end()
        return Outcome(self.simulation.now_us / 1_000_000, self.met)

    def _end(self) -> None:
        """Let nothing go on after a failure."""
        self._is_over = True
        with self.loop.running():
            while left := asyncio.all_tasks(self.loop):
                for task in left:
                    task.cancel()
                self.simulation.run_for(1_000)

    async def _whole(self) -> None:
        async with Admin(self.cluster.bootstrap) as admin:
            limit = {"max.message.bytes": _BATCH_BYTES_MAX}
            await admin.topics.create(_PLAIN, partitions=3, configs=limit)
            await admin.topics.create(_ACCOUNTS, partitions=2)
        readers = [
            asyncio.create_task(self._consume(protocol, strategy, number))
            for protocol, strategy in (("classic", "cooperative-sticky"), ("consumer", None))
            for number in range(2)
        ]
        faults = asyncio.create_task(self._break())
        writers = [self._produce("a"), self._produce("b"), self._transact()]
        async with asyncio.timeout(_HANGS_S):
            await asyncio.gather(*writers)
        self._is_over = True
        await faults
        await self._check_written()
        async with asyncio.timeout(_HANGS_S):
            while any(self._acknowledged.keys() - read for read in self._read.values()):
                await asyncio.sleep(0.5)
            # Whatever happened to a member, it is one again.
            while not all(consumer.assignment() for consumer in self._members.values()):
                await asyncio.sleep(0.5)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        await self._check_left()

    # What happens to them

    async def _break(self) -> None:
        trouble: list[Callable[[str], Awaitable[None]]] = [getattr(self, f"_{name}") for name in FAULTS]
        while not self._is_over:
            await asyncio.sleep(self.random.uniform(0.02, 0.5))
            chosen = self.random.choice(trouble)
            self.met["fault", chosen.__name__.removeprefix("_")] += 1
            await chosen(self.random.choice(list(self.cluster)).machine.host)
        self.network.mend_all()
        for node in self.cluster:
            self.network.admit(self._host, node.machine.host)

    async def _reset(self, _host: str) -> None:
        self.network.reset(self._host)

    async def _give_up(self, host: str) -> None:
        self.network.give_up(self._host, host)

    async def _lose_track(self, _host: str) -> None:
        self.network.lose_track(self._host)

    async def _reject(self, host: str) -> None:
        self.network.reject(self._host, host)
        await asyncio.sleep(self.random.uniform(0.1, 3))
        self.network.admit(self._host, host)

    async def _cut(self, host: str) -> None:
        pairs = [(self._host, host), (host, self._host)]
        for source, target in self.random.sample(pairs, self.random.randint(1, 2)):
            self.network.cut(source, target)
        await asyncio.sleep(self.random.uniform(0.1, 3))
        for source, target in pairs:
            self.network.mend(source, target)

    async def _lose_answers(self, host: str) -> None:
        """Let requests through, and break the connections before the answers come."""
        self.network.cut(host, self._host)
        await asyncio.sleep(self.random.uniform(0.01, 0.5))
        self.network.give_up(self._host, host)
        self.network.mend(host, self._host)

    async def _slow_down(self, host: str) -> None:
        self.network.slow_down(host, self._host, self.random.randrange(1_000, 300_000))
        await asyncio.sleep(self.random.uniform(0.1, 2))
        self.network.slow_down(host, self._host, 0)

    async def _kill(self, host: str) -> None:
        node = next(node for node in self.cluster if node.machine.host == host)
        if all(other.node is not None for other in self.cluster):
            node.kill()
            await asyncio.sleep(self.random.uniform(0.1, 5))
            node.switch_on()

    async def _add_partition(self, _host: str) -> None:
        if self.random.random() < 0.2:
            with suppress(ClientError, TimeoutError):
                async with asyncio.timeout(5), Admin(self.cluster.bootstrap, **_ADMIN) as admin:
                    count = len((await admin.topics.describe(_PLAIN)).partitions)
                    await admin.topics.add_partitions(_PLAIN, count + 1)

    # What they do

    def _note(self, event: str) -> None:
        self.met["event", event] += 1

    async def _produce(self, name: str) -> None:
        settings = {
            **_CLIENT,
            "linger_ms": self.random.choice((0, 5)),
            "buffer_memory": self.random.choice((1_500, 4_000, 1 << 20)),
            "batch_size": self.random.choice((400, 2_000)),
            "delivery_timeout_ms": self.random.choice((3_000, 60_000)),
            "max_block_ms": 60_000,
        }
        sent: list[tuple[bytes, SentRecord]] = []
        async with Producer(self.cluster.bootstrap, **settings) as producer:
            for number in range(self._records):
                value = b"%s %04d " % (name.encode(), number)
                value += b"x" * self.random.choice((10, 10, 100, 300))
                await self._send(producer, value, sent)
                if self.random.random() < 0.3:
                    await asyncio.sleep(self.random.uniform(0, 1))
                if self.random.random() < 0.05:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self.random.uniform(0, 0.5)):
                            await producer.flush()
            await producer.flush()
            must(producer._sender is not None, "the producer has ended by itself")
            used = 0 if producer._sender is None else producer._sender.accumulator.used_bytes
            must(used == 0, f"{used} bytes of the buffer were not given back")
        for value, record in sent:
            try:
                found = await record
            except ClientError:
                self._note("a record failed")
            else:
                self._acknowledged[value] = found.partition, found.offset

    async def _send(self, producer: Producer, value: bytes, sent: list[tuple[bytes, SentRecord]]) -> None:
        limit_s = self.random.uniform(0, 0.3) if self.random.random() < 0.2 else None
        try:
            async with asyncio.timeout(limit_s):
                sent.append((value, await producer.send(_PLAIN, value)))
        except (TimeoutError, ClientError):
            self._note("a send was cut off")
            self._refused.add(value)

    async def _transact(self) -> None:
        number = 0
        while number < self._records // 4:
            with suppress(ClientError, TimeoutError):
                async with Producer(
                    self.cluster.bootstrap,
                    transactional_id="t",
                    linger_ms=0,
                    delivery_timeout_ms=1_600,
                    **_CLIENT,
                ) as producer:
                    while number < self._records // 4:
                        number += 1
                        await self._transact_once(producer, b"%d" % number)

    async def _transact_once(self, producer: Producer, value: bytes) -> None:
        """Write one transaction, and go on with whatever was cut off until its end is known."""
        producer.begin_transaction()
        wants = self.random.random() < 0.8
        is_certain = True
        for _ in range(200):
            try:
                async with asyncio.timeout(self.random.choice((0.05, 0.5, 100))):
                    if is_certain:
                        is_certain = False
                        for partition in range(2):
                            await self._hand_over(producer, value, partition)
                        await producer.send_offsets_to_transaction({TopicPartition(_PLAIN, 0): 0}, "accounts")
                    if wants:
                        await producer.commit_transaction()
                        self._committed.append(value)
                    else:
                        await producer.abort_transaction()
                        self._aborted.append(value)
                    return
            except Fenced:
                raise
            except (ClientError, TimeoutError):
                self._note("a transaction was cut off")
                if wants and producer.may_abort:
                    # Whatever was cut off, it was not asked to be committed.
                    wants = False
                await asyncio.sleep(0.05)
        raise Wrong(f"transaction {value!r} does not come to an end")

    async def _hand_over(self, producer: Producer, value: bytes, partition: int) -> None:
        """Send a record of a transaction. Whether it fails, its commit has to know."""
        if self.random.random() < 0.5:
            await producer.send(_ACCOUNTS, value, partition=partition)
        else:
            await producer.send_and_wait(_ACCOUNTS, value, partition=partition)

    async def _consume(self, protocol: str, strategy: str | None, number: int) -> None:
        read = self._read.setdefault(protocol, set())
        settings: dict[str, Any] = {"group_protocol": protocol, "auto_commit_interval_ms": 300, **_CLIENT}
        if strategy is not None:
            settings |= {
                "partition_assignment_strategy": strategy,
                "session_timeout_ms": 6_000,
                "heartbeat_interval_ms": 500,
            }
        await asyncio.sleep(number)
        while True:
            with suppress(ClientError, TimeoutError):
                async with Consumer(
                    self.cluster.bootstrap,
                    group_id=protocol,
                    auto_offset_reset="earliest",
                    max_poll_interval_ms=5_000,
                    **settings,
                ) as consumer:
                    self._members[protocol, number] = consumer
                    consumer.subscribe([_PLAIN], on_revoked=self._dawdle, on_assigned=self._dawdle)
                    while self._is_over or self.random.random() < 0.998:
                        await self._poll(consumer, read)

    async def _dawdle(self, _some: object) -> None:
        await asyncio.sleep(self.random.choice((0, 0, 0.1, 2)))

    async def _poll(self, consumer: Consumer, read: set[bytes | None]) -> None:
        limit_s = self.random.uniform(0, 0.2) if self.random.random() < 0.3 else None
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                read |= {record.value for record in await consumer.poll(300, self.random.choice((1, 500)))}
        if not self._is_over and self.random.random() < 0.03:
            self._note("a member was late")
            await asyncio.sleep(7)

    # What must hold

    async def _check_written(self) -> None:
        found: dict[int, list[bytes]] = {}
        places: dict[bytes, tuple[int, int]] = {}
        for partition, offset, value in await self._read_all(_PLAIN):
            must(
                value not in places,
                f"{value[:6]!r} is there twice: {places.get(value)}, {(partition, offset)}",
            )
            places[value] = partition, offset
            found.setdefault(partition, []).append(value)
        for value, place in self._acknowledged.items():
            must(value in places, f"{value[:6]!r} was acknowledged at {place} and is not there")
            must(places[value][0] == place[0], f"{value[:6]!r} is in another partition")
            must(
                place[1] in (-1, places[value][1]), f"{value[:6]!r} is not at {place}, but at {places[value]}"
            )
        must(not self._refused & places.keys(), f"not taken in and there: {self._refused & places.keys()}")
        for partition, values in found.items():
            for name in (b"a", b"b"):
                mine = [value[:6] for value in values if value.startswith(name)]
                must(mine == sorted(mine), f"partition {partition} has {mine}")
        seen: dict[int, list[bytes]] = {0: [], 1: []}
        for partition, _, value in await self._read_all(_ACCOUNTS):
            seen[partition].append(value)
        must(seen[0] == seen[1], f"transactions are there in part: {seen}")
        must(len(set(seen[0])) == len(seen[0]), f"a transaction is there twice: {seen[0]}")
        must(set(self._committed) <= set(seen[0]), f"lost: {set(self._committed) - set(seen[0])}")
        must(not set(self._aborted) & set(seen[0]), f"aborted: {set(self._aborted) & set(seen[0])}")
        self.met["event", "a record was acknowledged"] += len(self._acknowledged)
        self.met["event", "a transaction was committed"] += len(self._committed)

    async def _read_all(self, topic: str) -> list[tuple[int, int, bytes]]:
        found = []
        async with asyncio.timeout(_HANGS_S):
            async with Consumer(
                self.cluster.bootstrap,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                **_CLIENT,
            ) as consumer:
                for where in sorted(await consumer.partitions_for(topic)):
                    # No transaction is open for long: the last producer has ended its own.
                    end = (await consumer.end_offsets([where], includes_open=True))[where]
                    consumer.assign([where])
                    while await consumer.position(where) < end:
                        records = await consumer.poll(500)
                        found += [(item.partition, item.offset, item.value or b"") for item in records]
        return found

    async def _check_left(self) -> None:
        deadline_s = self.loop.time() + _QUIET_S
        while True:
            tasks = asyncio.all_tasks(self.loop) - {asyncio.current_task()}
            left = [
                *(str(task.get_coro()) for task in tasks),
                *(transport.name for transport in self.network._transports[self._host]),
            ]
            if not left:
                return
            must(self.loop.time() < deadline_s, f"left behind: {left}")
            await asyncio.sleep(0.2)


def run_seed(seed: int, records: int = 60) -> Outcome:
    """Run one seed."""
    return World(seed, records).run()
