"""What clients do in a simulated cluster. Everything that can be judged goes into one history.

- Transactions, transfers and a copier, as in campaigns with real processes (`ottla.testing.guarantees`).
- A producer without transactions that has several batches on their way at once.
- A classic group and a KIP-848 group that read what it writes, with members that come and go.
- A producer to a compacted topic, and topics that are created and deleted.
- Two producers with the same transactional id, of which one does not know that it was replaced.
- Somebody who looks at watermarks and committed offsets all the time.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final, Protocol

from tests.simulation.cluster.rules.wrong import Wrong, must

from ottla import Admin, Consumer, Producer
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer.batch import SentRecord
from ottla.model.ids import TopicPartition
from ottla.testing.guarantees.errors import judge_plain
from ottla.testing.guarantees.generator import (
    PARTITIONS_PER_TOPIC,
    Generator,
    all_keys,
    key_of_partition,
    partition_of,
)
from ottla.testing.guarantees.ours import OttlaProcess, name_of
from ottla.testing.guarantees.process import GROUP, Records
from ottla.testing.guarantees.recorder import Recorder
from ottla.testing.guarantees.watermarks import (
    COMMITTED_OFFSET,
    HIGH_WATERMARK,
    LAST_STABLE_OFFSET,
    LOG_START_OFFSET,
)
from ottla.testing.guarantees.working import copy, work
from ottla.wire.error_code import ErrorCode

WORKERS: Final = 2
PLAIN_KEYS: Final = (1 << 22, (1 << 22) + 1)
"""What is written without transactions, and read by groups."""
HAUNTED_KEY: Final = (1 << 22) + 2
PLAIN_TOPIC: Final = partition_of(PLAIN_KEYS[0])[0]
LATEST: Final = "latest"
PASSING: Final = "passing"
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "segment.ms": "700",
    "min.cleanable.dirty.ratio": "0.01",
}
SHORT_LIVED: Final = {"retention.ms": "1000", "segment.ms": "500"}
TRANSACTION_TIMEOUT_MS: Final = 5_000
QUIET_S_MAX: Final = 60
"""How long it may take after the last fault until everything can be read."""
CLIENT: Final[dict[str, Any]] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50}


class Observer(Protocol):
    """Somebody who sees the state of all nodes."""

    def acknowledged(self, topic: str, partition: int, offset: int) -> None:
        """Take note of a write that was acknowledged."""

    def read(self, topic: str, partition: int, offset: int) -> None:
        """Take note of a record that a consumer has read."""

    def was_contested(self, topic: str, partition: int, since_us: int) -> bool:
        """Say whether a partition had two leaders at once, since a time in microseconds."""


class Workload:
    """All clients of one run."""

    def __init__(
        self,
        bootstrap: str,
        seed: int,
        operations: int,
        now_ns: Callable[[], int],
        observer: "Observer",
        clients: Sequence[str],
    ) -> None:
        """`clients` are the names of those that there are beside transactions and a plain producer."""
        self._clients = clients
        self.events: list[dict[str, Any]] = []
        self.recorder = Recorder(self.events.append, now_ns)
        self._now_ns = now_ns
        self._was_contested = observer.was_contested
        self._when_acknowledged = observer.acknowledged
        self._when_read = observer.read
        self._bootstrap = bootstrap
        self._rng = Random(f"workload {seed}")
        # A run is short, so that what is rare has to be less so.
        self._generator = Generator(seed, operations, assignments=1 / 10, crashes=1 / 40)
        self._keys = [*all_keys(operations), *PLAIN_KEYS]
        self._is_over = False
        self._sends = operations
        self.acknowledged: dict[int, list[int]] = {key: [] for key in PLAIN_KEYS}
        self.read: dict[str, dict[int, set[int]]] = {
            protocol: {key: set() for key in PLAIN_KEYS}
            for protocol in ("classic", "consumer")
            if protocol in clients
        }
        self.replaced: set[int] = set()
        self.haunted: list[int] = []
        self.last_of_key: dict[bytes, tuple[int, bytes]] = {}

    async def create_topics(self) -> None:
        """Create what the others need."""
        topics = dict.fromkeys(partition_of(key)[0] for key in (*self._keys, HAUNTED_KEY))
        async with self._admin() as admin:
            for topic in topics:
                await _create(admin, topic, PARTITIONS_PER_TOPIC)
            await _create(admin, LATEST, 1, COMPACTED)
            await _create(admin, PASSING, 1, SHORT_LIVED)

    async def work(self) -> None:
        """Let all clients work until everything is done."""
        helpers = [
            asyncio.create_task(self._consume(protocol, member))
            for protocol in self.read
            for member in range(2)
        ]
        helpers += [
            asyncio.create_task(run())
            for client, run in (("looker", self._look), ("short-lived", self._come_and_go))
            if client in self._clients
        ]

        def connect(transactional_id: str | None) -> OttlaProcess:
            return OttlaProcess(self._bootstrap, transactional_id, TRANSACTION_TIMEOUT_MS, **CLIENT)

        others: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "copier": partial(copy, connect, self._generator, self.recorder),
            "compacted": self._overwrite,
            "haunted": self._haunt,
        }
        await asyncio.gather(
            *(work(connect, number, self._generator, self.recorder) for number in range(WORKERS)),
            self._send(),
            *(run() for client, run in others.items() if client in self._clients),
        )
        self._is_over = True
        await asyncio.gather(*helpers)

    async def read_all(self) -> None:
        """Read everything that is committed to the very end: nothing may be left open."""
        name = self.recorder.new_process()
        self.recorder.write(name, "invoke", "final", [["poll"]])
        places = [TopicPartition(*partition_of(key)) for key in self._keys]
        records: Records = {}
        missing: dict[TopicPartition, int] = {}
        async with self._admin() as admin:
            found = await admin.offsets.list(dict.fromkeys(places, OffsetSpec.LATEST))
            missing = {place: found[place].offset for place in places if found[place].offset > 0}
        async with Consumer(
            self._bootstrap, auto_offset_reset="earliest", isolation_level="read_committed", **CLIENT
        ) as consumer:
            consumer.assign(list(missing))
            loop = asyncio.get_running_loop()
            deadline = loop.time() + QUIET_S_MAX
            while missing and loop.time() < deadline:
                for record in await consumer.poll(timeout_ms=200):
                    key = key_of_partition(*record.where)
                    records.setdefault(str(key), []).append([record.offset, int(record.value or b"")])
                for place in list(missing):
                    if await consumer.position(place) >= missing[place]:
                        del missing[place]
        error = f"did not reach {missing}" if missing else None
        self.recorder.write(name, "fail" if missing else "ok", "final", [["poll", records]], error)

    def _admin(self) -> Admin:
        return Admin(self._bootstrap, default_api_timeout_ms=30_000, **CLIENT)

    # Without transactions

    async def _send(self) -> None:
        """Send bursts to both partitions, with one producer after the other."""
        left, next_value = self._sends, dict.fromkeys(PLAIN_KEYS, 0)
        while left > 0:
            processes = [self.recorder.new_process() for _ in range(3)]
            try:
                async with Producer(
                    self._bootstrap, linger_ms=0, delivery_timeout_ms=8_000, max_block_ms=8_000, **CLIENT
                ) as producer:
                    while left > 0:
                        left -= 1
                        key = self._rng.choice(PLAIN_KEYS)
                        values = range(next_value[key], next_value[key] + self._rng.randint(1, 3))
                        next_value[key] = values.stop
                        if not await self._send_burst(producer, key, values, processes):
                            break
                        await asyncio.sleep(self._rng.uniform(0, 0.05))
            except ClientError:
                await asyncio.sleep(0.1)

    async def _send_burst(
        self, producer: Producer, key: int, values: range, processes: Sequence[int]
    ) -> bool:
        """Send values one right after the other. False says that the producer is to be thrown away."""
        topic, partition = partition_of(key)

        async def finish(process: int, value: int, sent: SentRecord | ClientError) -> int | None:
            try:
                if isinstance(sent, ClientError):
                    raise sent
                offset: int = (await sent).offset
            except ClientError as error:
                verdict = judge_plain(name_of(error))
                step = ["send", key, [None, value]]
                self.recorder.write(process, verdict.type, "send", [step], name_of(error))
                return None
            self.recorder.write(process, "ok", "send", [["send", key, [offset, value]]])
            self.acknowledged[key].append(value)
            self._when_acknowledged(topic, partition, offset)
            return offset

        under_way: list[SentRecord | ClientError] = []
        for process, value in zip(processes, values, strict=False):
            self.recorder.write(process, "invoke", "send", [["send", key, value]])
            try:
                under_way.append(await producer.send(topic, b"%d" % value, partition=partition))
            except ClientError as error:
                under_way.append(error)
        offsets = await asyncio.gather(*map(finish, processes, values, under_way))
        known = [offset for offset in offsets if offset is not None]
        must(known == sorted(known), f"order: values {values} of key {key} have the offsets {offsets}")
        return None not in offsets

    async def _overwrite(self) -> None:
        """Write the same few keys again and again, to a compacted topic, and to one that is not kept."""
        number = 0
        while number < self._sends // 2:
            try:
                async with Producer(
                    self._bootstrap, linger_ms=0, delivery_timeout_ms=8_000, max_block_ms=8_000, **CLIENT
                ) as producer:
                    while number < self._sends // 2:
                        number += 1
                        key, value = b"%d" % (number % 5), b"%d" % number
                        sent = await producer.send_and_wait(LATEST, value, key=key, partition=0)
                        self.last_of_key[key] = (sent.offset, value)
                        await producer.send_and_wait(PASSING, value, partition=0)
                        await asyncio.sleep(self._rng.uniform(0, 0.1))
            except ClientError:
                await asyncio.sleep(0.1)

    async def check_latest(self) -> None:
        """The last value of a key that was acknowledged is there, or a later one is."""
        found: dict[bytes, tuple[int, bytes]] = {}
        async with Consumer(self._bootstrap, auto_offset_reset="earliest", **CLIENT) as consumer:
            consumer.assign([TopicPartition(LATEST, 0)])
            quiet = 0
            while quiet < 3:
                records = await consumer.poll(timeout_ms=300)
                quiet = 0 if records else quiet + 1
                for record in records:
                    assert record.key is not None
                    assert record.value is not None
                    found[record.key] = (record.offset, record.value)
        for key, last in self.last_of_key.items():
            must(
                found.get(key, (-1, b"")) >= last, f"compaction: {key!r} was {last}, and is {found.get(key)}"
            )

    # Producers that were replaced

    async def _haunt(self) -> None:
        """Have two producers with one transactional id: the older one can do nothing any more."""
        topic, partition = partition_of(HAUNTED_KEY)
        number = 0
        while number < self._sends // 2:
            number += 4
            try:
                async with asyncio.timeout(30), self._medium() as old:
                    self.replaced |= {number, number + 1}
                    is_open = self._rng.random() < 0.5
                    if is_open:
                        old.begin_transaction()
                        await old.send_and_wait(topic, b"%d" % number, partition=partition)
                    async with self._medium() as young:
                        young.begin_transaction()
                        await young.send_and_wait(topic, b"%d" % (number + 2), partition=partition)
                        await self._let_act(old, number + 1, is_open)
                        await young.send_and_wait(topic, b"%d" % (number + 3), partition=partition)
                        await young.commit_transaction()
                        self.haunted += (number + 2, number + 3)
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.1)
        # Nobody comes back for this one: it has to time out.
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(30), self._medium("abandoned") as abandoned:
                abandoned.begin_transaction()
                self.replaced.add(number + 4)
                await abandoned.send_and_wait(topic, b"%d" % (number + 4), partition=partition)
                await abandoned.abandon()

    def _medium(self, name: str = "haunted") -> Producer:
        return Producer(
            self._bootstrap,
            transactional_id=name,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            linger_ms=0,
            delivery_timeout_ms=8_000,
            max_block_ms=8_000,
            **CLIENT,
        )

    async def _let_act(self, old: Producer, value: int, is_open: bool) -> None:
        """Let a producer that was replaced send something, and commit."""
        topic, partition = partition_of(HAUNTED_KEY)
        try:
            if not is_open:
                old.begin_transaction()
            if not is_open or self._rng.random() < 0.5:
                await old.send_and_wait(topic, b"%d" % value, partition=partition)
            await old.commit_transaction()
        except ClientError:
            return
        must(False, f"fencing: a producer that was replaced could commit {value - 1}")

    async def check_haunted(self) -> None:
        """What was committed is there, whole and in order, and nothing of producers that were replaced."""
        if "haunted" not in self._clients:
            return
        records = await self._read_to_end(HAUNTED_KEY, isolation_level="read_committed")
        found = [int(record.value or b"") for record in records]
        must(not self.replaced & set(found), f"fencing: {sorted(self.replaced & set(found))} can be read")
        left = [value for value in self.haunted if value not in found]
        must(not left, f"fencing: {left} was committed, but {found} is there")
        must(found == sorted(set(found)), f"fencing: {found} is not in order")
        must(len(found) % 2 == 0, f"fencing: {found} has half of a transaction")

    async def _read_to_end(self, key: int, **settings: Any) -> list[Any]:
        """Read a partition until nothing comes any more."""
        async with Consumer(self._bootstrap, auto_offset_reset="earliest", **settings, **CLIENT) as consumer:
            place = TopicPartition(*partition_of(key))
            consumer.assign([place])
            found: list[Any] = []
            async with self._admin() as admin:
                end = (await admin.offsets.list({place: OffsetSpec.LATEST}))[place].offset
            async with asyncio.timeout(QUIET_S_MAX):
                while await consumer.position(place) < end:
                    found += await consumer.poll(timeout_ms=300)
        return found

    async def write_last(self) -> None:
        """Create a topic and write to it: a cluster that works again can do that."""
        try:
            async with asyncio.timeout(QUIET_S_MAX), self._admin() as admin:
                await _create(admin, "last", 1)
                async with Producer(
                    self._bootstrap, linger_ms=0, delivery_timeout_ms=60_000, **CLIENT
                ) as last:
                    await last.send_and_wait("last", b"works")
        except (ClientError, TimeoutError) as error:
            raise Wrong(f"quiet: nothing can be written in the end: {error}") from error

    # Groups

    async def _consume(self, protocol: str, member: int) -> None:
        """Be a member of a group that leaves and comes back now and then."""
        read = self.read[protocol]
        while not self._has_read_all(protocol):
            try:
                async with asyncio.timeout(QUIET_S_MAX + 30), self._member(protocol) as consumer:
                    consumer.subscribe([PLAIN_TOPIC])
                    for _ in range(self._rng.randint(10, 60) if member else 300):
                        for record in await consumer.poll(timeout_ms=100):
                            key = key_of_partition(*record.where)
                            read[key].add(int(record.value or b""))
                            self._when_read(*record.where, record.offset)
                        if self._has_read_all(protocol):
                            break
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.2)

    def _member(self, protocol: str) -> Consumer:
        more: dict[str, Any] = {}
        if protocol == "classic":
            more = {"session_timeout_ms": 3_000, "heartbeat_interval_ms": 500}
        return Consumer(
            self._bootstrap,
            group_id=f"group {protocol}",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=200,
            default_api_timeout_ms=10_000,
            **more,
            **CLIENT,
        )

    def _has_read_all(self, protocol: str) -> bool:
        read = self.read[protocol]
        return self._is_over and all(read[key] >= set(values) for key, values in self.acknowledged.items())

    # Others

    async def _come_and_go(self) -> None:
        """Create topics, write to them, and delete them."""
        number = 0
        while not self._is_over:
            name = f"short-lived-{number % 2}"
            number += 1
            try:
                async with (
                    asyncio.timeout(10),
                    self._admin() as admin,
                    Producer(
                        self._bootstrap, linger_ms=0, delivery_timeout_ms=3_000, max_block_ms=3_000, **CLIENT
                    ) as producer,
                ):
                    await _create(admin, name, 1)
                    await producer.send_and_wait(name, b"something")
                    await asyncio.sleep(self._rng.uniform(0.1, 1))
                    await admin.topics.delete(name)
            except (ClientError, TimeoutError):
                # It was done before the answer was lost, or the other way round.
                await asyncio.sleep(0.2)

    async def _look(self) -> None:
        """Look at the bounds of partitions, again and again."""
        while not self._is_over:
            name = self.recorder.new_process()
            try:
                async with (
                    self._admin() as admin,
                    Consumer(self._bootstrap, group_id=GROUP, enable_auto_commit=False, **CLIENT) as group,
                ):
                    while not self._is_over:
                        await asyncio.sleep(0.25)
                        await self._look_once(name, admin, group)
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.2)

    async def _look_once(self, name: int, admin: Admin, group: Consumer) -> None:
        keys = self._generator.first_assignment().keys
        places = {TopicPartition(*partition_of(key)): str(key) for key in keys}
        bounds: dict[str, dict[str, int]] = {}
        began_us = self._now_ns() // 1000
        self.recorder.write(name, "invoke", "look", [["look"]])
        try:
            async with asyncio.timeout(5):
                for bound, spec, committed in (
                    (LOG_START_OFFSET, OffsetSpec.EARLIEST, False),
                    (LAST_STABLE_OFFSET, OffsetSpec.LATEST, True),
                    (HIGH_WATERMARK, OffsetSpec.LATEST, False),
                ):
                    found = await admin.offsets.list(dict.fromkeys(places, spec), read_committed=committed)
                    bounds[bound] = {places[place]: found[place].offset for place in places}
                offsets = await group.committed(list(places))
                bounds[COMMITTED_OFFSET] = {
                    places[place]: 0 if one is None else one.offset for place, one in offsets.items()
                }
        except (ClientError, TimeoutError) as error:
            self.recorder.write(name, "fail", "look", [["look"]], str(error))
            raise
        # What a leader says that does not know of the next one counts for nothing.
        stale = [key for place, key in places.items() if self._was_contested(*place, began_us)]
        for offsets_by_key in bounds.values():
            for key in stale:
                del offsets_by_key[key]
        self.recorder.write(name, "ok", "look", [["look", bounds]])


async def _create(admin: Admin, topic: str, partitions: int, configs: dict[str, str] | None = None) -> None:
    try:
        await admin.topics.create(topic, partitions=partitions, configs=configs)
    except BrokerError as error:
        if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
