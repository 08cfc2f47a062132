"""The producer for callers without an event loop. Any number of threads may share one.

with Producer("127.0.0.1:9092") as producer:
    sent = producer.send("payments", b"42", key=b"customer-7")
    print(sent.result().offset)

`send` does not cross to the loop's thread for each record: it puts records into a queue, and a pump on the
loop takes them out, many at a time. Their order is that of the calls.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from ottla.client import surroundings
from ottla.client.errors import ClientError, RequestTimedOut
from ottla.client.group import GroupMetadata, OffsetAndMetadata
from ottla.client.journey import Listener
from ottla.client.producer import producer as asynchronous
from ottla.client.producer.batch import RecordMetadata, SentRecord
from ottla.client.producer.partitioner import Partitioner
from ottla.client.properties import Properties
from ottla.client.serializers import Serializer, adds_headers, raw_bytes, serialize_with_headers
from ottla.client.sync.loop_thread import LoopThread
from ottla.model.ids import TopicPartition

R = TypeVar("R")
_logger = logging.getLogger(__name__)
# What waits here does not count as buffer.memory yet, so it must not be much.
_HANDED_OVER_MAX = 4096


class Delivery:
    """A record on its way."""

    __slots__ = ("_error", "_producer", "_sent", "_waiter")

    def __init__(self, producer: "Producer") -> None:
        self._producer = producer
        self._sent: SentRecord | None = None
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait until the record is acknowledged. Raises what kept it from being."""
        if self._error is not None:
            raise self._error
        if self._sent is not None and self._sent.is_done:
            # Most are asked for after the producer was flushed, or even closed: no need to cross threads.
            return self._sent.outcome()
        return self._producer._thread.run(self._result(timeout_s))

    @property
    def is_done(self) -> bool:
        """Return whether the record is acknowledged or has failed."""
        return self._error is not None or (self._sent is not None and self._sent.is_done)

    async def _result(self, timeout_s: float | None) -> RecordMetadata:
        try:
            async with asyncio.timeout(timeout_s):
                if self._sent is None and self._error is None:
                    self._waiter = self._waiter or asyncio.get_running_loop().create_future()
                    await asyncio.shield(self._waiter)
                if self._error is not None:
                    raise self._error
                assert self._sent is not None, "a record that was taken in is sent or has failed"
                return await self._sent.result()
        except TimeoutError:
            raise RequestTimedOut(f"the record was not acknowledged within {timeout_s:g} s") from None

    def _taken_in(self, sent: SentRecord | None, error: Exception | None) -> None:
        self._sent, self._error = sent, error
        if self._waiter is not None:
            self._waiter.set_result(None)


class Producer:
    """Sends records."""

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
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._adds_headers = adds_headers(key_serializer, value_serializer)
        self._queue: deque[tuple[Delivery, str, dict[str, Any]]] = deque()
        self._room = threading.Condition()
        self._pumping: asyncio.Task[None] | None = None
        self._is_pumping = False
        self._closed = False
        self._ended: bool | None = None
        """How the last transaction ended, if the caller has not learned of it: Ctrl-C may come just then."""
        self._twin = asynchronous.Producer(
            bootstrap_servers, properties=properties, partitioner=partitioner, journey=journey, **settings
        )
        self._thread = LoopThread("ottla-producer")
        self._thread.run_first(self._twin.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> Delivery:
        """Hand a record over. Waits only while records come faster than they are taken."""
        self._twin._transactions.check_may_send()
        header_pairs = tuple(headers)
        if self._adds_headers:
            key_bytes, added = serialize_with_headers(self._key_serializer, topic, key)
            value_bytes, more = serialize_with_headers(self._value_serializer, topic, value)
            header_pairs += added + more
        else:
            key_bytes = None if key is None else self._key_serializer(topic, key)
            value_bytes = None if value is None else self._value_serializer(topic, value)
        record = {
            "key": key_bytes,
            "value": value_bytes,
            "partition": partition,
            "timestamp_ms": surroundings.now_ms() if timestamp_ms is None else timestamp_ms,
            "headers": header_pairs,
        }
        delivery = Delivery(self)
        with self._room:
            while len(self._queue) >= _HANDED_OVER_MAX and not self._closed:
                self._room.wait()
            if self._closed:
                raise ClientError("the producer is closed")
            self._queue.append((delivery, topic, record))
            if not self._is_pumping:
                self._is_pumping = True
                self._thread.loop.call_soon_threadsafe(self._start_pump)
        return delivery

    def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        timeout_s: float | None = None,
    ) -> RecordMetadata:
        """Send a record, and return where it lies once it is acknowledged."""
        delivery = self.send(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        return delivery.result(timeout_s)

    def flush(self) -> None:
        """Return when everything handed over is acknowledged or has failed."""
        self._run_in_order(self._twin.flush())

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Open a transaction; commit at the end of the block, abort when it raises or cannot be committed."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            if self._twin.may_abort:
                self.abort_transaction()
            raise

    def begin_transaction(self) -> None:
        """Open a transaction."""

        async def begin() -> None:
            self._twin.begin_transaction()
            self._ended = None

        self._run_in_order(begin())

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: str | GroupMetadata
    ) -> None:
        """Commit what a group has read as part of the transaction: the offsets to go on from.

        Give the `group_metadata()` of the consumer, so that a member the group has dropped cannot commit.
        """
        self._run_in_order(self._twin.send_offsets_to_transaction(offsets, group))

    def commit_transaction(self) -> None:
        """Make everything of the transaction count.

        Raises if any of its records could not be sent; then it can only be aborted. If this call is
        interrupted, or the coordinator is away for too long, call it again: the transaction may be committed.
        """
        self._run_in_order(self._end(commit=True))
        self._ended = None

    def abort_transaction(self) -> None:
        """Make nothing of the transaction count. If this call is interrupted, call it again."""
        self._run_in_order(self._end(commit=False))
        self._ended = None

    async def _end(self, commit: bool) -> None:
        if self._ended is commit:
            return
        await (self._twin.commit_transaction() if commit else self._twin.abort_transaction())
        self._ended = commit

    def close(self) -> None:
        """Send what is left, abort a transaction that is open, then close and end the thread."""
        with self._room:
            if self._closed:
                return
            self._closed = True
            self._room.notify_all()
        try:
            self._run_in_order(self._twin.close())
        except KeyboardInterrupt:
            # A caller in a hurry does not wait for records, but no connection is left open.
            self._thread.run(self._twin.abandon())
            raise
        finally:
            self._thread.stop()

    def abandon(self) -> None:
        """Close without sending what is left: it fails."""
        with self._room:
            if self._closed:
                return
            self._closed = True
            self._room.notify_all()
        try:
            self._thread.run(self._twin.abandon())
        finally:
            self._thread.stop()

    def _run_in_order(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine after the records that were handed over before."""

        async def after_the_pump() -> R:
            try:
                while self._is_pumping:
                    if self._pumping is None:
                        await asyncio.sleep(0)
                    else:
                        await asyncio.shield(self._pumping)
            except BaseException:
                coroutine.close()
                raise
            return await coroutine

        return self._thread.run(after_the_pump())

    def _start_pump(self) -> None:
        self._pumping = asyncio.get_running_loop().create_task(self._pump())

    async def _pump(self) -> None:
        while True:
            with self._room:
                taken, self._queue = self._queue, deque()
                self._is_pumping = bool(taken)
                self._room.notify_all()
            if not taken:
                self._pumping = None
                return
            for delivery, topic, record in taken:
                try:
                    delivery._taken_in(await self._twin.send(topic, **record), None)
                except Exception as error:
                    # Nobody may ever ask for this delivery: then the log is where the failure is seen.
                    _logger.warning("a record for %r was not sent: %s", topic, error)
                    delivery._taken_in(None, error)
