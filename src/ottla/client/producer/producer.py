"""The producer as its users see it.

async with Producer("127.0.0.1:9092") as producer:
    sent = await producer.send("payments", b"42", key=b"customer-7")
    metadata = await sent          # topic, partition, offset, timestamp
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.journey import Listener, Stage, tell
from ottla.client.producer.accumulator import Accumulator, record_bytes
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.partitioner import Candidates, Choice, DefaultPartitioner, Partitioner
from ottla.client.producer.sender import Sender
from ottla.client.producer.settings import ProducerSettings
from ottla.client.producer.transactions import Transactions
from ottla.client.security import cluster_for
from ottla.client.serializers import Serializer, raw_bytes
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode


class RecordMetadata(NamedTuple):
    """Where a record came to lie. The offset is -1 where the broker gave none (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class RecordTooLarge(ClientError):
    """A record that no request could carry."""


class SentRecord:
    """A record on its way. Await it for its metadata; or let it be, and `flush` at the end."""

    __slots__ = ("_future", "_timestamp_ms", "_where")

    def __init__(self, where: TopicPartition, timestamp_ms: int, future: "asyncio.Future[int]") -> None:
        self._where = where
        self._timestamp_ms = timestamp_ms
        self._future = future

    async def result(self) -> RecordMetadata:
        """Wait until the record is acknowledged. Raises what kept it from being."""
        offset = await asyncio.shield(self._future)
        return RecordMetadata(self._where.topic, self._where.partition, offset, self._timestamp_ms)

    def __await__(self) -> Any:
        return self.result().__await__()

    @property
    def is_done(self) -> bool:
        """Say whether the record is acknowledged or has failed."""
        return self._future.done()


class Producer:
    """Sends records. One for a process is enough: it serves any number of tasks."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Mapping[str, Any] | None = None,
        key_serializer: Serializer = raw_bytes,
        value_serializer: Serializer = raw_bytes,
        partitioner: Partitioner | None = None,
        journey: Listener | None = None,
        **settings: Any,
    ) -> None:
        if bootstrap_servers is not None:
            settings["bootstrap_servers"] = bootstrap_servers
        self._settings = ProducerSettings.of(properties, **settings)
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._partitioner = partitioner or DefaultPartitioner(self._settings.batch_size, random.Random())
        self._journey = journey
        self._cluster: Cluster = cluster_for(self._settings, allow_auto_topic_creation=True)
        self._identity = ProducerIdentity()
        self._transactions = Transactions(self._cluster, self._settings, self._identity)
        self._sender: Sender | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Find the cluster, and for a transactional producer end what an earlier life left open."""
        await self._cluster.start()
        settings = self._settings

        def accumulator(wake: Any) -> Accumulator:
            return Accumulator(settings.batch_size, settings.linger_ms / 1000, settings.buffer_memory, wake)

        self._sender = Sender(
            self._cluster,
            settings,
            accumulator,
            self._identity,
            self._transactions,
            self._transactions.initialize,
            self._journey,
        )
        if settings.transactional_id is not None:
            await self._transactions.initialize()
        self._sender.start()

    async def close(self) -> None:
        """Send what is left, then close."""
        if self._sender is not None:
            try:
                await self._sender.flush()
            finally:
                await self._sender.stop()
                self._sender = None
        await self._cluster.close()

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> SentRecord:
        """Hand a record over. Waits only for metadata, or while the buffer is full."""
        sender = self._running()
        self._transactions.check_may_send()
        key_bytes = self._key_serializer(topic, key)
        value_bytes = self._value_serializer(topic, value)
        header_pairs = tuple(headers)
        size_bytes = record_bytes(key_bytes, value_bytes, header_pairs)
        if size_bytes > self._settings.max_request_size:
            raise RecordTooLarge(
                f"a record for {topic!r} takes {size_bytes} bytes, above max.request.size "
                f"({self._settings.max_request_size})"
            )
        choice = await self._choose(topic, key_bytes, value_bytes, partition)
        where = TopicPartition(topic, choice.partition)
        await sender.accumulator.wait_for_room(size_bytes, self._settings.max_block_ms / 1000)
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        future = sender.accumulator.append(
            where,
            timestamp_ms,
            key_bytes,
            value_bytes,
            header_pairs,
            size_bytes,
            asyncio.get_running_loop().time(),
        )
        if key_bytes is None and partition is None:
            self._partitioner.appended(topic, choice.partition, size_bytes)
        if self._journey is not None:
            self._tell(topic, choice, size_bytes)
        return SentRecord(where, timestamp_ms, future)

    async def flush(self) -> None:
        """Return when everything handed over is acknowledged or has failed."""
        await self._running().flush()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Producer"]:
        """Open a transaction; commit at the end of the block, abort when it raises."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self.abort_transaction()
            raise
        await self.commit_transaction()

    def begin_transaction(self) -> None:
        """Open a transaction."""
        self._running()
        self._transactions.begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int], group_id: str, **membership: Any
    ) -> None:
        """Commit what a group has read as part of the transaction: the offsets to go on from."""
        await self._transactions.send_offsets(offsets, group_id, **membership)

    async def commit_transaction(self) -> None:
        """Make everything of the transaction count."""
        await self._running().flush()
        await self._transactions.end(commit=True)

    async def abort_transaction(self) -> None:
        """Make nothing of the transaction count."""
        sender = self._running()
        sender.fail_all(BrokerError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted"))
        await sender.flush()
        await self._transactions.end(commit=False)

    async def _choose(
        self, topic: str, key: bytes | None, value: bytes | None, partition: int | None
    ) -> Choice:
        view = self._cluster.topology.topics.get(topic)
        if view is None or not view.partitions:
            await self._learn(topic)
            view = self._cluster.topology.topics[topic]
        if partition is not None:
            if partition not in view.partitions:
                raise ValueError(
                    f"{topic!r} has no partition {partition}, only 0 to {len(view.partitions) - 1}"
                )
            return Choice(partition, "given by the caller")
        available = [number for number, part in view.partitions.items() if part.leader >= 0]
        return self._partitioner.choose(Candidates(topic, key, value, len(view.partitions), available))

    async def _learn(self, topic: str) -> None:
        async def once() -> None:
            topology = await self._cluster.refresh([topic])
            view = topology.topics.get(topic)
            if view is None or not view.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code
                raise BrokerError(code, f"topic {topic!r} cannot be used")

        try:
            async with asyncio.timeout(self._settings.max_block_ms / 1000):
                await self._cluster.retry(once)
        except TimeoutError:
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} did not appear within max.block.ms"
            ) from None

    def _tell(self, topic: str, choice: Choice, size_bytes: int) -> None:
        assert self._journey is not None
        tell(self._journey, Stage.SERIALIZED, topic, None, None, size_bytes=size_bytes)
        tell(self._journey, Stage.PARTITION_CHOSEN, topic, choice.partition, None, reason=choice.reason)
        tell(self._journey, Stage.BATCHED, topic, choice.partition, None)

    def _running(self) -> Sender:
        if self._sender is None:
            raise ClientError("the producer is not open: use `async with Producer(...)`, or call `start`")
        return self._sender
