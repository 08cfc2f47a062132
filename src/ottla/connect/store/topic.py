"""A topic of a worker: read from its beginning and followed, and written so that the reader has seen it."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ottla.client.consumer.consumer import Consumer
from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer
from ottla.connect.store.records import StoredRecord, UnreadableRecord
from ottla.model.ids import TopicPartition

_logger = logging.getLogger(__name__)
_PAUSE_S: Final = 0.2


class TopicFollower:
    """Follows all partitions of a topic, and passes each record on, once and in order of its partition.

    Records of transactions that were aborted, or are open, are not passed on.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        topic: str,
        replay: Callable[[bytes | None, bytes | None], None],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.topic = topic
        self._consumer = Consumer(
            properties=properties,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
        )
        self._replay = replay
        self._tell_moved = moved
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._moved = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read all there is, and follow from there."""
        await self._consumer.start()
        self._partitions = await self._consumer.partitions_for(self.topic)
        self._consumer.assign(self._partitions)
        self._task = asyncio.create_task(self._follow())
        # A transaction that a dead worker left open is no reason not to start.
        await self._wait_for(await self._consumer.end_offsets(self._partitions))

    async def stop(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.close()

    async def catch_up(self) -> None:
        """Wait until everything is read that is committed now.

        An open transaction hides what others have committed behind it. So this waits for the end of all
        that were open.
        """
        await self._wait_for(await self._consumer.end_offsets(self._partitions, includes_open=True))

    async def _wait_for(self, ends: Mapping[TopicPartition, int]) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._is_at(ends))

    def _is_at(self, ends: Mapping[TopicPartition, int]) -> bool:
        positions = self._consumer.positions()
        return all(
            end == 0 or (where in positions and positions[where].offset >= end) for where, end in ends.items()
        )

    async def _follow(self) -> None:
        while True:
            try:
                records = await self._consumer.poll(timeout_ms=200)
            except ClientError as error:
                _logger.warning("topic %r cannot be read, trying again: %s", self.topic, error)
                await asyncio.sleep(_PAUSE_S)
                continue
            for record in records:
                try:
                    self._replay(record.key, record.value)
                except UnreadableRecord as error:
                    _logger.warning("offset %d of topic %r is ignored: %s", record.offset, self.topic, error)
                except Exception:
                    # Whatever a stranger has written there, the worker follows what comes behind it.
                    _logger.exception("offset %d of topic %r is ignored", record.offset, self.topic)
            if records:
                self._tell_moved()
            async with self._moved:
                # Also without records: a position moves past the markers of transactions.
                self._moved.notify_all()


class TopicWriter:
    """Writes to a topic. With a transactional id only the latest writer of that id can."""

    def __init__(
        self, properties: Mapping[str, str], follower: TopicFollower, transactional_id: str | None = None
    ) -> None:
        settings: dict[str, Any] = {"linger_ms": 0}
        if transactional_id is not None:
            settings["transactional_id"] = transactional_id
        self._producer = Producer(properties=properties, **settings)
        self._is_transactional = transactional_id is not None
        self._follower = follower

    async def start(self) -> None:
        """Take over from earlier writers."""
        await self._producer.start()

    async def stop(self) -> None:
        """Close."""
        await self._producer.close()

    async def append(self, records: Sequence[StoredRecord], *, is_read_back: bool = True) -> None:
        """Write records, all or none if the writer is transactional, and wait until they are read."""
        if self._is_transactional:
            async with self._producer.transaction():
                await self._send(records)
        else:
            await self._send(records)
        if is_read_back:
            await self._follower.catch_up()

    async def _send(self, records: Sequence[StoredRecord]) -> None:
        sent = [
            await self._producer.send(self._follower.topic, record.value, key=record.key)
            for record in records
        ]
        for item in sent:
            await item
