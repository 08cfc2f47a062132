"""The producer as its users see it.

async with Producer("127.0.0.1:9092") as producer:
    sent = await producer.send("payments", b"42", key=b"customer-7")
    metadata = await sent          # topic, partition, offset, timestamp
    metadata = await producer.send_and_wait("payments", b"43")
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, NoReturn

from ottla.client import surroundings
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.group import GroupMetadata, OffsetAndMetadata
from ottla.client.journey import Listener, Stage, tell
from ottla.client.opened import Opened
from ottla.client.producer.accumulator import Accumulator, record_bytes
from ottla.client.producer.batch import RecordMetadata, SentRecord
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.partitioner import DefaultPartitioner, Partitioner, TopicPartitions
from ottla.client.producer.sender import Sender
from ottla.client.producer.settings import ProducerSettings
from ottla.client.producer.transactions import Transactions, WrongTransactionState, aborted
from ottla.client.properties import Properties
from ottla.client.security import cluster_for
from ottla.client.serializers import Serializer, adds_headers, raw_bytes, serialize_with_headers
from ottla.client.topology import TopicView
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)


class RecordTooLarge(ClientError):
    """A record that no request could carry."""


class _Route(NamedTuple):
    """What `send` must know of a topic, made once for each metadata answer."""

    view: TopicView
    places: tuple[TopicPartition, ...]
    among: TopicPartitions


class Producer(Opened):
    """Sends records. One for a process is enough: it serves any number of tasks."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Properties | None = None,
        key_serializer: Serializer = raw_bytes,
        value_serializer: Serializer = raw_bytes,
        partitioner: Partitioner | None = None,
        journey: Listener | None = None,
        **settings: Any,
    ) -> None:
        self._settings = ProducerSettings.of(properties, bootstrap_servers=bootstrap_servers, **settings)
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        # A serializer may put the id of a schema into a header. Most do not, and pay nothing for it.
        self._adds_headers = adds_headers(key_serializer, value_serializer)
        self._partitioner = partitioner or DefaultPartitioner(
            self._settings.batch_size,
            adaptive=self._settings.partitioner_adaptive_partitioning_enable,
            ignore_keys=self._settings.partitioner_ignore_keys,
        )
        self._journey = journey
        self._record_bytes_max = min(self._settings.max_request_size, self._settings.buffer_memory)
        self._cluster: Cluster = cluster_for(self._settings, allow_auto_topic_creation=True)
        self._identity = ProducerIdentity()
        self._transactions = Transactions(self._cluster, self._settings, self._identity)
        self._routes: dict[str, _Route] = {}
        self._lets_others_run = False
        self._sender: Sender | None = None
        self._is_closing = False

    async def start(self) -> None:
        """Find the cluster, and for a transactional producer end what an earlier life left open."""
        if self._sender is not None:
            raise ClientError("the producer is open already: `start` was called twice")
        self._is_closing = False
        try:
            await self._cluster.start()
            if self._settings.transactional_id is not None:
                await self._transactions.initialize()
        except BaseException:
            await self._cluster.close()
            raise
        self._sender = self._make_sender()
        self._sender.start()

    def _make_sender(self) -> Sender:
        settings = self._settings

        def accumulator(wake: Any) -> Accumulator:
            return Accumulator(
                settings.batch_size,
                settings.linger_ms / 1000,
                settings.buffer_memory,
                wake,
                asyncio.get_running_loop().time,
            )

        return Sender(
            self._cluster,
            settings,
            accumulator,
            self._identity,
            self._transactions,
            self._transactions.initialize,
            self._journey,
        )

    async def close(self) -> None:
        """Send what is left, abort a transaction that is open, then close.

        If this is cancelled, what is left fails.
        """
        self._is_closing = True
        try:
            if self._sender is not None:
                # Callers that wait for memory have not handed over their records yet, and cannot any more.
                self._sender.accumulator.close(ClientError("the producer was closed"))
                await self._flush_or_abort(self._sender)
        finally:
            await self.abandon()

    async def _flush_or_abort(self, sender: Sender) -> None:
        if not self.may_abort:
            await sender.flush()
            return
        # Readers of committed records must not wait until the transaction times out.
        number = self._transactions.begin_end(commit=False)
        try:
            await self._abort(sender, number)
        except ClientError as error:
            _logger.warning("the open transaction was not aborted, and will time out: %s", error)

    async def _abort(self, sender: Sender, number: int) -> None:
        sender.fail_all(aborted(), is_wanted=True)
        await sender.flush()
        await self._transactions.end(commit=False, number=number)

    async def abandon(self) -> None:
        """Close without sending what is left: it fails."""
        self._is_closing = True
        sender, self._sender = self._sender, None
        try:
            if sender is not None:
                await sender.stop()
        finally:
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
        # The way of most records: nothing here waits, and nothing is made that one record does not need.
        if self._lets_others_run:
            # A batch was begun: let the sender have the one before it, so that the broker works meanwhile.
            # Before this record is taken in: a caller that cancels must find that it was not.
            self._lets_others_run = False
            await asyncio.sleep(0)
        sender = self._running()
        self._transactions.check_may_send()
        header_pairs = tuple(headers)
        if self._adds_headers:
            key_bytes, added = serialize_with_headers(self._key_serializer, topic, key)
            value_bytes, more = serialize_with_headers(self._value_serializer, topic, value)
            header_pairs += added + more
        else:
            key_bytes = None if key is None else self._key_serializer(topic, key)
            value_bytes = None if value is None else self._value_serializer(topic, value)
        size_bytes = record_bytes(key_bytes, value_bytes, header_pairs)
        try:
            if size_bytes > self._record_bytes_max:
                self._refuse_as_too_large(topic, size_bytes)
            route = self._routes.get(topic)
            if route is None or route.view is not self._cluster.topology.topics.get(topic):
                route = await self._learn_route(topic, sender)
            chosen = partition
            if chosen is None:
                chosen = self._partitioner.choose(route.among, key_bytes, value_bytes)
            elif not 0 <= chosen < route.among.number:
                _refuse_partition(topic, chosen, route.among.number)
            accumulator = sender.accumulator
            if not accumulator.take_room(size_bytes):
                await self._wait_for_room(sender, size_bytes)
        except Exception as error:
            self._was_not_handed_over(error)
            raise
        if timestamp_ms is None:
            timestamp_ms = surroundings.current.time_ns() // 1_000_000
        batch = accumulator.append(
            route.places[chosen], timestamp_ms, key_bytes, value_bytes, header_pairs, size_bytes
        )
        place = len(batch.records) - 1
        if partition is None:
            self._partitioner.appended(topic, key_bytes, size_bytes)
        if self._journey is not None:
            reason = "given by the caller" if partition is not None else self._partitioner.reason(key_bytes)
            self._tell(topic, chosen, reason, size_bytes)
        self._lets_others_run = place == 0
        return SentRecord(batch, place, timestamp_ms)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> RecordMetadata:
        """Send a record, and return where it lies once it is acknowledged."""
        sent = await self.send(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        return await sent.result()

    async def flush(self) -> None:
        """Return when everything handed over is acknowledged or has failed."""
        await self._running().flush()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Producer"]:
        """Open a transaction; commit at the end of the block, abort when it raises or cannot be committed."""
        self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            if self.may_abort:
                await self.abort_transaction()
            raise

    @property
    def may_abort(self) -> bool:
        """Say whether a transaction is open that can be aborted."""
        return self._transactions.may_abort

    def begin_transaction(self) -> None:
        """Open a transaction."""
        self._running()
        self._transactions.begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: str | GroupMetadata
    ) -> None:
        """Commit what a group has read as part of the transaction: the offsets to go on from.

        Give the `group_metadata()` of the consumer, so that a member the group has dropped cannot commit.
        """
        self._running()
        await self._transactions.send_offsets(offsets, group)

    async def commit_transaction(self) -> None:
        """Make everything of the transaction count.

        Raises if any of its records could not be sent; then it can only be aborted. If this call is
        cancelled, or the coordinator is away for too long, call it again: the transaction may be committed.
        """
        sender = self._running()
        number = self._transactions.begin_end(commit=True)
        await sender.flush()
        await self._transactions.end(commit=True, number=number)

    async def abort_transaction(self) -> None:
        """Make nothing of the transaction count. If this call is cut off, call it again."""
        sender = self._running()
        number = self._transactions.begin_end(commit=False)
        await self._abort(sender, number)

    def _was_not_handed_over(self, error: Exception) -> None:
        """Let the open transaction fail: without one of its records it must not be committed."""
        if isinstance(error, WrongTransactionState):
            return  # Not a record of the open transaction.
        if not isinstance(error, ClientError):
            error = ClientError(f"a record was not sent: {error}")
        self._transactions.failed(error, fatal=False)

    def _refuse_as_too_large(self, topic: str, size_bytes: int) -> NoReturn:
        setting, most = "max.request.size", self._settings.max_request_size
        if self._settings.buffer_memory < most:
            setting, most = "buffer.memory", self._settings.buffer_memory
        raise RecordTooLarge(
            f"a record for {topic!r} takes {size_bytes} bytes, more than {setting} ({most}): send smaller "
            "records, or raise it"
        )

    async def _wait_for_room(self, sender: Sender, size_bytes: int) -> None:
        number = self._transactions.number
        await sender.accumulator.wait_for_room(size_bytes, self._settings.max_block_ms / 1000)
        try:
            self._check_still(sender, number)
        except ClientError:
            sender.accumulator.give_back(size_bytes)
            raise

    def _check_still(self, sender: Sender, number: int) -> None:
        """Raise if, while a call waited, the producer was closed or its transaction came to an end."""
        if self._running() is not sender:
            raise ClientError("the producer was closed")
        self._transactions.check_may_send()
        if self._transactions.number != number:
            raise WrongTransactionState("the transaction of this record has ended while `send` waited")

    async def _learn_route(self, topic: str, sender: Sender) -> _Route:
        accumulator = sender.accumulator
        number = self._transactions.number
        view = self._cluster.topology.topics.get(topic)
        while view is None or not view.partitions:
            await self._learn(topic)
            self._check_still(sender, number)
            view = self._cluster.topology.topics.get(topic)
        places = tuple(TopicPartition(topic, number) for number in range(len(view.partitions)))
        available = tuple(number for number, part in view.partitions.items() if part.leader >= 0)

        def queued_batches(partition: int) -> int:
            return accumulator.queue_length(places[partition])

        route = _Route(view, places, TopicPartitions(topic, len(places), available, queued_batches))
        self._routes[topic] = route
        return route

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

    def _tell(self, topic: str, partition: int, reason: str, size_bytes: int) -> None:
        assert self._journey is not None
        tell(self._journey, Stage.SERIALIZED, topic, None, None, size_bytes=size_bytes)
        tell(self._journey, Stage.PARTITION_CHOSEN, topic, partition, None, reason=reason)
        tell(self._journey, Stage.BATCHED, topic, partition, None)

    def _running(self) -> Sender:
        sender = self._sender
        if sender is None or self._is_closing:
            raise ClientError("the producer is not open: use `async with Producer(...)`, or call `start`")
        if sender.failure is not None:
            raise ClientError(f"the producer was stopped: {sender.failure}") from sender.failure
        return sender


def _refuse_partition(topic: str, partition: int, number: int) -> NoReturn:
    raise ValueError(f"{topic!r} has no partition {partition}, only 0 to {number - 1}")
