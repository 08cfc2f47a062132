"""What happens in the source: topics are written to, grow, lose records, go, and come back as other ones."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any, Final

from tests.simulation.meetings import Met
from tests.simulation.mirror.seeded.truth import Life, Truth, value_of

from ottla.client import surroundings
from ottla.client.admin import Admin
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode

ACT: Final = "what happens"
QUICK: Final[dict[str, Any]] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50}
_PRODUCER: Final[dict[str, Any]] = {
    **QUICK,
    "linger_ms": 0,
    "delivery_timeout_ms": 8_000,
    "max_block_ms": 8_000,
}
_PARTITIONS_MAX: Final = 3
_VALUE_BYTES: Final = 3_000


class Source:
    """The topics of the source, and those who write to them."""

    def __init__(self, bootstrap: str, rng: Random, truth: Truth, met: Met) -> None:
        self._bootstrap = bootstrap
        self._rng = rng
        self._truth = truth
        self.met = met
        self._numbers = 0
        self.partitions: dict[str, int] = {}
        self.is_over = False
        # One changes topics at a time: an operator who lets a copy go on has to know what it goes on with.
        self.changing = asyncio.Lock()

    def admin(self) -> Admin:
        """Return a client that gives up soon."""
        return Admin(self._bootstrap, default_api_timeout_ms=6_000, **QUICK)

    async def live(self, topic: str, rng: Random) -> None:
        """Let one topic live until the time is over."""
        while not self.is_over:
            async with self.changing:
                life = await self._make(topic)
            await self._write_for(life, rng, rng.choice((1.5, 4.0, 10.0)))
            if self.is_over or rng.random() < 0.4:
                continue
            async with self.changing:
                self._truth.current[topic] = None
                await certainly(lambda: self._delete(topic), lambda: False)
                self.met[ACT, "a topic is deleted"] += 1
            await asyncio.sleep(rng.choice((0.0, 0.0, 0.5, 2.5)))

    async def _delete(self, topic: str) -> None:
        async with self.admin() as admin:
            try:
                await admin.topics.delete(topic)
            except BrokerError as error:
                if error.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise

    async def settle(self) -> None:
        """Find out which topics there are in the end: a request to delete one may have come late."""

        async def look() -> None:
            async with self.admin() as admin:
                listed = {item.topic_id for item in await admin.topics.list()}
            for topic, life in self._truth.current.items():
                if life is not None and life.id not in listed:
                    self._truth.current[topic] = None

        await certainly(look, lambda: False)

    async def _make(self, topic: str) -> Life:
        known = self._truth.current.get(topic)
        if known is not None:
            return known
        count = self._rng.choice((1, 1, 2))
        found: list[Uuid] = []

        async def make() -> None:
            async with self.admin() as admin:
                try:
                    await admin.topics.create(topic, partitions=count)
                except BrokerError as error:
                    if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                        raise
                listed = {item.name: item.topic_id for item in await admin.topics.list()}
                topic_id = listed.get(topic, ZERO_UUID)
                if topic_id == ZERO_UUID or topic_id in self._truth.lives:
                    raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic} is not known yet")
                found.append(topic_id)

        await certainly(make, lambda: False)
        life = self._truth.is_made(topic, found[-1], surroundings.now_ms())
        self.partitions[topic] = count
        if life.number > 0:
            self.met[ACT, "a topic is made again"] += 1
        return life

    async def _write_for(self, life: Life, rng: Random, lasts_s: float) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + lasts_s
        while loop.time() < until_s and not self.is_over:
            partition = rng.randrange(self.partitions[life.topic])
            with suppress(ClientError):
                match rng.choice(("plain", "plain", "commit", "abort", "rest", "more", "remove")):
                    case "plain":
                        await self._write(life, partition, rng)
                    case "rest":
                        await asyncio.sleep(rng.uniform(0.1, 0.8))
                    case "more":
                        await self._add_partition(life, rng)
                    case "remove":
                        await self._remove(life, partition, rng)
                    case how:
                        await self._transact(life, rng, commits=how == "commit")

    async def _write(self, life: Life, partition: int, rng: Random) -> None:
        compression = rng.choice(("none", "lz4", "zstd"))
        async with Producer(self._bootstrap, compression_type=compression, **_PRODUCER) as producer:
            for _ in range(rng.randint(1, 6)):
                await self._send(producer, life, partition, rng)
                await asyncio.sleep(rng.uniform(0, 0.05))

    async def _transact(self, life: Life, rng: Random, commits: bool) -> None:
        name = f"writer {rng.randrange(2)} of {life.topic}"
        async with Producer(
            self._bootstrap, transactional_id=name, transaction_timeout_ms=6_000, **_PRODUCER
        ) as producer:
            for _ in range(rng.randint(1, 3)):
                producer.begin_transaction()
                for _ in range(rng.randint(0, 4)):
                    await self._send(producer, life, rng.randrange(self.partitions[life.topic]), rng)
                await (producer.commit_transaction() if commits else producer.abort_transaction())
                self.met[ACT, f"a transaction is {'committed' if commits else 'aborted'}"] += 1

    async def _send(self, producer: Producer, life: Life, partition: int, rng: Random) -> None:
        self._numbers += 1
        value = value_of(life, partition, self._numbers)
        if rng.random() < 0.1:
            value += b" " + b"x" * _VALUE_BYTES
        sent = await producer.send_and_wait(life.topic, value, partition=partition)
        self._truth.note(life, partition, sent.offset, value, surroundings.now_ms())

    async def _add_partition(self, life: Life, rng: Random) -> None:
        count = self.partitions[life.topic] + 1
        if count > _PARTITIONS_MAX or rng.random() < 0.5:
            return
        async with self.admin() as admin:
            await admin.topics.add_partitions(life.topic, count)
        self.partitions[life.topic] = count
        self.met[ACT, "a partition is added"] += 1

    async def _remove(self, life: Life, partition: int, rng: Random) -> None:
        known = [*self._truth.acknowledged.get((life.id, partition), {})]
        if not known or rng.random() < 0.6:
            return
        before = rng.choice(known)
        key = (life.id, partition)
        self._truth.removed[key] = max(self._truth.removed.get(key, 0), before)
        async with self.admin() as admin:
            (await admin.records.delete({TopicPartition(life.topic, partition): before})).check()
        self.met[ACT, "records are removed"] += 1


async def certainly(act: Callable[[], Awaitable[None]], gives_up: Callable[[], bool]) -> None:
    """Do something until it is certain that it is done. Clusters may be away meanwhile."""
    while True:
        try:
            async with asyncio.timeout(15):
                return await act()
        except (ClientError, TimeoutError):
            if gives_up():
                return None
            await asyncio.sleep(0.2)
