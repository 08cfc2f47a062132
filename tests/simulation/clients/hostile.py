"""Clients in a world that is against them: `make sim WHAT=clients`.

Connections break before, in the middle of and after answers, lead nowhere or are refused. Leaders move, nodes
are killed and come back, or stay away, partitions are added, topics are made again, batches and records are
too large for their topic. Backlogs come at once, buffers have room for a few records, epochs come to their
end, callers give up in the middle of their calls. Whatever happens, what was acknowledged is there once and
in order, transactions are whole, a group leaves nothing out and shares its partitions, nothing hangs, and at
the end nothing is left behind. Once the trouble is over, every client can do everything again, and soon.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any, Final, NamedTuple

from tests.simulation.clients.members import Group, Member, Wrong, must
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
from ottla.testing.simulation.node import SimulatedNode
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
_AGAIN: Final = "again"
_WRITTEN_ONCE: Final = (_PLAIN, _AGAIN)
# Batches of a few records are larger than this, and are split.
_BATCH_BYTES_MAX: Final = "700"
_TOO_LARGE: Final = bytes(800)
_HANGS_S: Final = 400
_QUIET_S: Final = 40
# How long a call may take when all is well again, but for a node perhaps. A leader that is gone is replaced
# after some seconds, and a request that was on its way to it has to time out first.
_SOON_S: Final = 45
_EVENTS_MAX: Final = 6_000_000
_BURST: Final = 40
_EPOCH_MAX: Final = (1 << 15) - 1
_STRATEGIES: Final = ("cooperative-sticky", "range", "sticky", "range,cooperative-sticky")


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
    "make_again",
    "move_leaders",
)
EVENTS: Final = (
    "a record was acknowledged",
    "a record failed",
    "a record was too large",
    "a send was cut off",
    "a backlog came at once",
    "a batch was split",
    "an epoch was the last one",
    "a partition began its next epoch",
    "a record of a topic that was made again was acknowledged",
    "the last words were written though a node was away",
    "a record of a transaction was refused",
    "a transaction was committed",
    "a transaction was cut off",
    "a member was late",
)


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
        version = self.random.choice((1, 2, 2))
        features = (f"transaction.version={version}",)
        self.cluster = SimulatedCluster(
            self.simulation, self.network, 3, settings=_SETTINGS, features=features
        )
        self.loop = simulated_loop(self.simulation, self.network)
        self.met: Met = Counter()
        self._records = records
        self._host = self.loop.machine.host
        self._is_over = False
        self._calm = asyncio.Event()
        self._writing = 0
        self._made_again = 0
        """Odd while it is being done."""
        self._acknowledged: dict[str, dict[bytes, tuple[int, int]]] = {name: {} for name in _WRITTEN_ONCE}
        """By topic, with partition and offset. Of one that is made again, only what is of its last life."""
        self._in_last_epochs: set[bytes] = set()
        """The names of producers that come to the end of their ids."""
        self._refused: set[bytes] = set()
        """Not taken in: these must not be there at all."""
        self._committed: list[bytes] = []
        self._aborted: list[bytes] = []
        strategy = self.random.choice(_STRATEGIES)
        self._groups: dict[Group, dict[str, Any]] = {
            Group("classic"): {
                "partition_assignment_strategy": strategy,
                "session_timeout_ms": 6_000,
                "heartbeat_interval_ms": 500,
            },
            Group("broker-led"): {"group_protocol": "consumer"},
        }

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
            await admin.topics.create(_ACCOUNTS, partitions=2, configs=limit)
            await admin.topics.create(_AGAIN, partitions=2)
        readers = [
            asyncio.create_task(self._consume(group, number, settings))
            for group, settings in self._groups.items()
            for number in range(2)
        ]
        faults = asyncio.create_task(self._break())
        work = [self._produce("a", _PLAIN), self._produce("b", _PLAIN), self._produce("c", _AGAIN)]
        self._writing = len(work) + 1
        writers = [asyncio.create_task(writer) for writer in (*work, self._transact())]
        async with asyncio.timeout(_HANGS_S):
            while self._writing and not any(writer.done() for writer in writers):
                await asyncio.sleep(0.1)
        self._is_over = True
        await faults
        away = await self._leave_one_away()
        self._calm.set()
        async with asyncio.timeout(_HANGS_S):
            await asyncio.gather(*writers)
        if away is not None:
            self._note("the last words were written though a node was away")
            away.switch_on()
        await self._check_written()
        await self._check_groups()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        await self._check_left()

    async def _leave_one_away(self) -> SimulatedNode | None:
        """Have a node stay away for good, sometimes, at least as far as writers know."""
        if self.random.random() < 0.6:
            return None
        while any(node.node is None for node in self.cluster):
            await asyncio.sleep(0.1)
        node = self.random.choice(list(self.cluster))
        node.kill()
        return node

    async def _check_groups(self) -> None:
        everything = self._acknowledged[_PLAIN].keys()
        partitions = frozenset(await self._partitions_of(_PLAIN))
        for group in self._groups:
            try:
                async with asyncio.timeout(_HANGS_S):
                    while group.wrong is None and everything - group.values:
                        await asyncio.sleep(0.5)
                    # Whatever happened to its members, they share what there is.
                    while group.wrong is None and not group.is_shared_out(partitions):
                        await asyncio.sleep(0.5)
            except TimeoutError:
                left = len(everything - group.values)
                must(False, f"group {group.name} has not read {left}, and {group.shares()}")
            if group.wrong is not None:
                raise group.wrong

    async def _partitions_of(self, topic: str) -> list[TopicPartition]:
        async with Admin(self.cluster.bootstrap) as admin:
            return [
                TopicPartition(topic, number)
                for number in range(len((await admin.topics.describe(topic)).partitions))
            ]

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

    async def _move_leaders(self, _host: str) -> None:
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(5), Admin(self.cluster.bootstrap, **_ADMIN) as admin:
                await admin.replicas.elect()

    async def _make_again(self, _host: str) -> None:
        if self.random.random() < 0.5:
            return
        self._made_again += 1
        # It goes on in quiet: nobody could say whether a call that was cut off took effect.
        async with Admin(self.cluster.bootstrap, **_ADMIN) as admin:
            while True:
                with suppress(ClientError):
                    await admin.topics.delete(_AGAIN)
                with suppress(ClientError):
                    await admin.topics.create(_AGAIN, partitions=2)
                    break
                await asyncio.sleep(0.1)
        self._made_again += 1

    # What they do

    def _note(self, event: str) -> None:
        self.met["event", event] += 1

    async def _produce(self, name: str, topic: str) -> None:
        settings = {
            **_CLIENT,
            "metadata_max_age_ms": self.random.choice((2_000, 2_000, 2_000, 20_000)),
            "linger_ms": self.random.choice((0, 5)),
            "buffer_memory": self.random.choice((1_300, 2_500, 1 << 20)),
            "batch_size": self.random.choice((400, 2_000)),
            "delivery_timeout_ms": self.random.choice((3_000, 60_000)),
            "max_block_ms": 60_000,
        }
        sent: list[tuple[bytes, int, SentRecord]] = []
        async with Producer(self.cluster.bootstrap, **settings) as producer:
            if self.random.random() < 0.3:
                self._in_last_epochs.add(name.encode())
                self._begin_in_last_epoch(producer)
            in_a_burst = 0
            for number in range(self._records):
                value = b"%s %04d " % (name.encode(), number)
                value += b"x" * self.random.choice((10, 10, 100, 300))
                if self.random.random() < 0.02 and topic == _PLAIN:
                    value += _TOO_LARGE
                in_a_burst -= 1
                if self.random.random() < 0.03:
                    self._note("a backlog came at once")
                    in_a_burst = _BURST
                await self._send(producer, topic, value, sent, is_calm=in_a_burst <= 0)
            await self._last_words(producer, topic, name, sent)
            must(producer._sender is not None, "the producer has ended by itself")
            used = 0 if producer._sender is None else producer._sender.accumulator.used_bytes
            must(used == 0, f"{used} bytes of the buffer were not given back")
        await self._take_outcomes(topic, sent)

    async def _take_outcomes(self, topic: str, sent: list[tuple[bytes, int, SentRecord]]) -> None:
        for value, life, record in sent:
            try:
                found = await record
            except ClientError:
                self._note("a record was too large" if value.endswith(_TOO_LARGE) else "a record failed")
            else:
                if record._batch.ordinal[1]:
                    self._note("a batch was split")
                must(not value.endswith(_TOO_LARGE), "a record was taken that is too large")
                if topic == _PLAIN or life == self._made_again:
                    self._acknowledged[topic][value] = found.partition, found.offset
                if topic == _AGAIN and self._made_again:
                    self._note("a record of a topic that was made again was acknowledged")

    def _begin_in_last_epoch(self, producer: Producer) -> None:
        """Have a producer whose next epoch, or the one after it, is the last one that its id has."""
        identity = producer._identity
        take, begin = identity.take_another, identity.start_again

        def take_late(producer_id: int, _epoch: int) -> None:
            take(producer_id, _EPOCH_MAX - self.random.randrange(2))

        def start_again(where: TopicPartition) -> bool:
            keeps_id = begin(where)
            self._note("a partition began its next epoch" if keeps_id else "an epoch was the last one")
            return keeps_id

        identity.take_another = take_late  # type: ignore[method-assign,assignment]
        identity.start_again = start_again  # type: ignore[method-assign]

    async def _last_words(
        self, producer: Producer, topic: str, name: str, sent: list[tuple[bytes, int, SentRecord]]
    ) -> None:
        """See that all is well soon after the trouble: each partition can be written to, also new ones."""
        await producer.flush()
        self._writing -= 1
        await self._calm.wait()
        partitions = await self._partitions_of(topic)
        # Until then it need not know of the last changes.
        await asyncio.sleep(producer._settings.metadata_max_age_ms / 1000 + 3)
        for where in partitions:
            value = b"%s 9%03d " % (name.encode(), where.partition)
            try:
                async with asyncio.timeout(_SOON_S):
                    record = await producer.send(topic, value, partition=where.partition)
                    await record
            except (TimeoutError, ClientError, ValueError) as error:
                must(False, f"{name} cannot write to {where}, though all is well again: {error!r}")
            sent.append((value, self._made_again, record))

    async def _send(
        self,
        producer: Producer,
        topic: str,
        value: bytes,
        sent: list[tuple[bytes, int, SentRecord]],
        *,
        is_calm: bool,
    ) -> None:
        limit_s = self.random.uniform(0, 0.3) if self.random.random() < 0.2 else None
        life = self._made_again
        key = b"%d" % self.random.randrange(6) if self.random.random() < 0.5 else None
        try:
            async with asyncio.timeout(limit_s):
                sent.append((value, life, await producer.send(topic, value, key=key)))
        except (TimeoutError, ClientError):
            self._note("a send was cut off")
            self._refused.add(value)
        if is_calm and self.random.random() < 0.3:
            await asyncio.sleep(self.random.uniform(0, 1))
        if is_calm and self.random.random() < 0.05:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.random.uniform(0, 0.5)):
                    await producer.flush()

    async def _transact(self) -> None:
        number, count = 0, self._records // 4
        last: set[bytes] = set()
        while number < count or not self._calm.is_set():
            with suppress(ClientError, TimeoutError):
                async with Producer(
                    self.cluster.bootstrap,
                    transactional_id="t",
                    linger_ms=0,
                    delivery_timeout_ms=1_600,
                    **_CLIENT,
                ) as producer:
                    while number < count:
                        number += 1
                        await self._transact_once(producer, b"%d" % number)
                    self._writing -= 1
                    await self._calm.wait()
                    # Once the trouble is over, the same producer goes on.
                    async with asyncio.timeout(_SOON_S):
                        while not last & set(self._committed):
                            last.add(b"last %d" % len(last))
                            await self._transact_once(producer, max(last), is_last=True)
        must(bool(last & set(self._committed)), "no transaction can be committed, though all is well again")

    async def _transact_once(self, producer: Producer, value: bytes, *, is_last: bool = False) -> None:
        """Write one transaction, and go on with whatever was cut off until its end is known."""
        producer.begin_transaction()
        wants = is_last or self.random.random() < 0.8
        is_certain = True
        for _ in range(200):
            try:
                async with asyncio.timeout(100 if is_last else self.random.choice((0.05, 0.5, 100, 100))):
                    if is_certain:
                        is_certain = False
                        await self._fill(producer, value, is_last=is_last)
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

    async def _fill(self, producer: Producer, value: bytes, *, is_last: bool) -> None:
        for partition in range(2):
            await self._hand_over(producer, value, partition)
        if not is_last and self.random.random() < 0.1:
            # One that no broker takes. What becomes of it, nobody asks: the commit has to know.
            self._note("a record of a transaction was refused")
            await producer.send(_ACCOUNTS, value + _TOO_LARGE, partition=0)
        offsets = {TopicPartition(_PLAIN, 0): int(value) if value.isdigit() else 0}
        await producer.send_offsets_to_transaction(offsets, "accounts")

    async def _hand_over(self, producer: Producer, value: bytes, partition: int) -> None:
        """Send a record of a transaction. Whether it fails, its commit has to know."""
        if self.random.random() < 0.5:
            await producer.send(_ACCOUNTS, value, partition=partition)
        else:
            await producer.send_and_wait(_ACCOUNTS, value, partition=partition)

    async def _consume(self, group: Group, number: int, protocol: dict[str, Any]) -> None:
        settings = {
            **_CLIENT,
            **protocol,
            "auto_commit_interval_ms": 300,
            "max_partition_fetch_bytes": self.random.choice((500, 1 << 20)),
            "fetch_buffer_bytes": self.random.choice((1_000, 1 << 26)),
        }
        await asyncio.sleep(number)
        while True:
            with suppress(ClientError, TimeoutError):
                async with Consumer(
                    self.cluster.bootstrap,
                    group_id=group.name,
                    auto_offset_reset="earliest",
                    max_poll_interval_ms=5_000,
                    **settings,
                ) as consumer:
                    group.members[number] = consumer
                    member = Member(group, self._dawdle)
                    consumer.subscribe(
                        [_PLAIN],
                        on_assigned=member.assigned,
                        on_revoked=member.revoked,
                        on_lost=member.revoked,
                    )
                    while self._is_over or self.random.random() < 0.998:
                        await self._poll(consumer, member)

    async def _dawdle(self) -> None:
        await asyncio.sleep(self.random.choice((0, 0, 0.1, 2)))

    async def _poll(self, consumer: Consumer, member: Member) -> None:
        limit_s = self.random.uniform(0, 0.2) if self.random.random() < 0.3 else None
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                member.handed_over(await consumer.poll(300, self.random.choice((1, 500))))
        if not self._is_over and self.random.random() < 0.03:
            self._note("a member was late")
            await asyncio.sleep(7)

    # What must hold

    async def _check_written(self) -> None:
        for topic in _WRITTEN_ONCE:
            await self._check_written_once(topic)
        await self._check_transactions()

    async def _check_written_once(self, topic: str) -> None:
        found: dict[int, list[bytes]] = {}
        places: dict[bytes, tuple[int, int]] = {}
        for partition, offset, value in await self._read_all(topic):
            must(
                value not in places,
                f"{value[:6]!r} is there twice: {places.get(value)}, {(partition, offset)}",
            )
            places[value] = partition, offset
            found.setdefault(partition, []).append(value)
        for value, place in self._acknowledged[topic].items():
            must(value in places, f"{value[:6]!r} was acknowledged at {place} and is not there")
            must(places[value][0] == place[0], f"{value[:6]!r} is in another partition")
            must(
                place[1] in (-1, places[value][1]), f"{value[:6]!r} is not at {place}, but at {places[value]}"
            )
        # A record that was given up may still come, out of its order. But while the producer keeps its id,
        # brokers refuse what is older.
        late = {value for value in places if value[:1] in self._in_last_epochs}
        late -= self._acknowledged[topic].keys()
        must(not self._refused & places.keys(), f"not taken in and there: {self._refused & places.keys()}")
        for partition, values in found.items():
            for name in (b"a", b"b", b"c"):
                mine = [value[:6] for value in values if value.startswith(name) and value not in late]
                must(mine == sorted(mine), f"partition {partition} of {topic} has {mine}")
        self.met["event", "a record was acknowledged"] += len(self._acknowledged[topic])

    async def _check_transactions(self) -> None:
        seen: dict[int, list[bytes]] = {0: [], 1: []}
        for partition, _, value in await self._read_all(_ACCOUNTS):
            seen[partition].append(value)
        must(seen[0] == seen[1], f"transactions are there in part: {seen}")
        must(len(set(seen[0])) == len(seen[0]), f"a transaction is there twice: {seen[0]}")
        must(set(self._committed) <= set(seen[0]), f"lost: {set(self._committed) - set(seen[0])}")
        must(not set(self._aborted) & set(seen[0]), f"aborted: {set(self._aborted) & set(seen[0])}")
        committed = [int(value) for value in seen[0] if value.isdigit()]
        async with Admin(self.cluster.bootstrap) as admin:
            found = (await admin.group_offsets.list("accounts")).get(TopicPartition(_PLAIN, 0))
        # The last words commit offset 0.
        must(found is not None and found.offset == 0, f"offsets of the last transaction are {found}")
        must(committed == sorted(committed), f"transactions are in the order {committed}")
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
