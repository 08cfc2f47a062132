"""Writes statuses to their topic, one after the other, while everything else goes on."""

import asyncio
import contextlib
import logging
from typing import Final

from ottla.client import surroundings
from ottla.client.errors import ClientError
from ottla.connect.herding.units import Unit
from ottla.connect.store.records import StoredRecord, status_record, topic_record
from ottla.connect.store.statuses import Status, StatusState, is_safe
from ottla.connect.store.topic import TopicWriter

_logger = logging.getLogger(__name__)
_PATIENCE_S: Final = 10.0
"""How long what is left may take when the worker stops. Without the cluster it would take minutes."""


class StatusWriter:
    """Writes how units of this worker do, and which topics they use."""

    def __init__(self, writer: TopicWriter, statuses: StatusState) -> None:
        self._writer = writer
        self._statuses = statuses
        self._queue: asyncio.Queue[tuple[Unit, Status | None] | StoredRecord] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to write."""
        await self._writer.start()
        self._task = asyncio.create_task(self._write_all())

    async def stop(self) -> None:
        """Write what is left, as far as that does not take long, and close."""
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._queue.join()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._writer.stop()

    def tell(self, unit: Unit, status: Status) -> None:
        """Have a status written."""
        self._queue.put_nowait((unit, status))

    def forget(self, unit: Unit) -> None:
        """Have the status removed of what does not exist any more."""
        self._queue.put_nowait((unit, None))

    def tell_topic(self, topic: str, connector: str, task: int) -> None:
        """Have it written that a connector uses a topic."""
        self._queue.put_nowait(topic_record(topic, connector, task, surroundings.now_ms()))

    async def forget_topics(self, connector: str) -> None:
        """Forget which topics a connector has used."""
        known = self._topics_of(connector)
        if known:
            await self._writer.append(known)

    async def _write_all(self) -> None:
        while True:
            item = await self._queue.get()
            try:
                records = [item] if isinstance(item, StoredRecord) else self._records(*item)
                if records:
                    await self._writer.append(records)
            except ClientError as error:
                _logger.warning("a status could not be written: %s", error)
            except Exception:
                # A bug of ours. Without this task no status would ever be written, and nobody could stop.
                _logger.exception("a status could not be written")
            finally:
                self._queue.task_done()

    def _records(self, unit: Unit, status: Status | None) -> list[StoredRecord]:
        task = unit.task_or_none
        if status is not None:
            is_ours = is_safe(self._statuses.find(unit.connector, task), status)
            return [status_record(unit.connector, task, status.content())] if is_ours else []
        topics = self._topics_of(unit.connector) if unit.is_connector else []
        return [status_record(unit.connector, task, None), *topics]

    def _topics_of(self, connector: str) -> list[StoredRecord]:
        return [topic_record(topic, connector, 0, None) for topic in self._statuses.topics.get(connector, {})]
