"""The consumer for callers without an event loop. One thread at a time may ask it for records.

with Consumer("127.0.0.1:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
    consumer.subscribe(["payments"])
    for record in consumer:
        handle(record)
        consumer.commit()

`for` crosses to the loop's thread once for many records. Those that it has not handed over yet count as not
read: `commit` leaves them out, and whatever else is asked of the consumer makes it read them again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Self

from ottla.client.consumer import consumer as asynchronous
from ottla.client.consumer.health import CLOSED, ConsumerHealth
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.group import OffsetAndMetadata
from ottla.client.journey import Listener
from ottla.client.properties import Properties
from ottla.client.serializers import Deserializer, from_bytes
from ottla.client.sync.loop_thread import LoopThread, blocking, blocking_call
from ottla.model.ids import TopicPartition

Callback = Callable[[frozenset[TopicPartition]], None]
_twin = asynchronous.Consumer
_WHILE_NOTHING_COMES_MS = 3_600_000


class Consumer:
    """Reads records, alone or as a member of a group."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        properties: Properties | None = None,
        key_deserializer: Deserializer = from_bytes,
        value_deserializer: Deserializer = from_bytes,
        journey: Listener | None = None,
        **settings: Any,
    ) -> None:
        self._ahead: deque[ConsumerRecord] = deque()
        self._twin = _twin(
            bootstrap_servers,
            properties=properties,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            journey=journey,
            **settings,
        )
        self._thread = LoopThread("ottla-consumer")
        self._thread.run_first(self._twin.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        while not self._ahead:
            self._thread.run(self._read_ahead(_WHILE_NOTHING_COMES_MS, None))
        return self._ahead.popleft()

    def close(self) -> None:
        """Commit if that is automatic, leave the group, close, and end the thread."""
        if self._thread.is_running:
            try:
                self._thread.run(self._read_again(self._twin.close))
            finally:
                self._thread.stop()

    def subscribe(
        self,
        topics: Collection[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Read topics, by name or by a regular expression (RE2) of whole names, sharing them with the group.

        The callbacks are called while `poll` or `for` waits, on another thread; they may use the consumer.
        """
        blocking_call(_twin.subscribe)(
            self,
            topics,
            pattern=pattern,
            on_assigned=_beside_the_loop(on_assigned),
            on_revoked=_beside_the_loop(on_revoked),
            on_lost=_beside_the_loop(on_lost),
        )

    def poll(self, timeout_ms: int = 1000, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records as soon as there are some, or none when the time is over."""
        self._thread.run(self._read_again(lambda: self._read_ahead(timeout_ms, max_records)))
        records = list(self._ahead)
        self._ahead.clear()
        return records

    def get_many(
        self, timeout_ms: int = 1000, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Do as `poll` does, and return the records by partition."""
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in self.poll(timeout_ms, max_records):
            by_partition.setdefault(record.where, []).append(record)
        return by_partition

    def commit(self, offsets: asynchronous.Offsets | None = None) -> None:
        """Store offsets to go on from: those given, or after the last record that was handed over."""
        if offsets is None and self._ahead:
            offsets = self.positions()
        blocking(_twin.commit)(self, offsets)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all positions that are known: what `commit` would store."""
        known = blocking_call(_twin.positions)(self)
        for where, record in self._first_ahead().items():
            if where in known:
                known[where] = OffsetAndMetadata(record.offset)
        return known

    def position(self, where: TopicPartition) -> int:
        """Return the offset of the next record to be returned, waiting until it is known."""
        first = self._first_ahead().get(where)
        return blocking(_twin.position)(self, where) if first is None else first.offset

    def seek(self, where: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Go on at an offset."""
        self._drop_ahead({where})
        blocking_call(_twin.seek)(self, where, offset, leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first record there is; of all partitions, unless some are named."""
        self._drop_ahead(partitions)
        blocking_call(_twin.seek_to_beginning)(self, *partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on at what is written from now on; of all partitions, unless some are named."""
        self._drop_ahead(partitions)
        blocking_call(_twin.seek_to_end)(self, *partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these until `resume`. In a group they stay assigned."""
        self._thread.run(self._read_again(_nothing))
        blocking_call(_twin.pause)(self, *partitions)

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        self._thread.run(self._read_again(self._twin.unsubscribe))

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions, shared with nobody. With a group.id, from where that group left off."""
        self._thread.run(self._read_again(_nothing))
        blocking_call(_twin.assign)(self, partitions)

    def health(self) -> ConsumerHealth:
        """Say how this consumer is, from what it knows already: no broker is asked. Any thread may ask.

        For a health endpoint: `is_healthy` and `sentence` say it in short, `as_json` says it all.
        """
        # Taken first: what is handed over meanwhile counts as not read yet, never the other way round.
        unread = {where: record.offset for where, record in self._first_ahead().items()}
        if not self._thread.is_running:
            return CLOSED
        return blocking_call(_twin.health)(self).read_again_from(unread)

    resume = blocking_call(_twin.resume)
    paused = blocking_call(_twin.paused)
    assignment = blocking_call(_twin.assignment)
    subscription = blocking_call(_twin.subscription)
    lag = blocking_call(_twin.lag)
    group_metadata = blocking_call(_twin.group_metadata)
    beginning_offsets = blocking(_twin.beginning_offsets)
    end_offsets = blocking(_twin.end_offsets)
    offsets_for_times = blocking(_twin.offsets_for_times)
    partitions_for = blocking(_twin.partitions_for)
    committed = blocking(_twin.committed)

    async def _read_ahead(self, timeout_ms: int, max_records: int | None) -> None:
        # Kept on this side of the threads: a Ctrl-C that comes now must not lose what was read.
        self._ahead.extend(await self._twin.poll(timeout_ms, max_records))

    def _first_ahead(self) -> dict[TopicPartition, ConsumerRecord]:
        first: dict[TopicPartition, ConsumerRecord] = {}
        # A copy: the thread that is asked how the consumer is may be another than the one that reads.
        for record in self._ahead.copy():
            first.setdefault(record.where, record)
        return first

    def _drop_ahead(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what was read ahead of some partitions, or of all: they are read elsewhere now."""
        kept = [record for record in self._ahead if partitions and record.where not in partitions]
        self._ahead = deque(kept)

    async def _read_again(self, then: Callable[[], Any]) -> Any:
        """Go back to what was not handed over yet, then go on."""
        assigned = self._twin.assignment()
        for where, record in self._first_ahead().items():
            if where in assigned:
                self._twin.seek(where, record.offset)
        self._ahead.clear()
        return await then()


async def _nothing() -> None:
    """Do nothing: to read again is all that is asked."""


def _beside_the_loop(callback: Callback | None) -> Any:
    """Let a callback run on a thread of its own, so that it may use the consumer as any thread may."""
    if callback is None:
        return None

    async def call(partitions: frozenset[TopicPartition]) -> None:
        await asyncio.to_thread(callback, partitions)

    return call
