"""Statuses are written, or not, and a worker can stop either way."""

import asyncio
from typing import Any

from ottla.client.errors import ClientError
from ottla.connect.herding.units import Unit
from ottla.connect.store import status_writer
from ottla.connect.store.status_writer import StatusWriter
from ottla.connect.store.statuses import RUNNING, Status, StatusState


class Topic:
    """A topic that takes what it takes."""

    def __init__(self, *fails_with: Exception | None) -> None:
        self.written = 0
        self.is_away = False
        self._fails_with = list(fails_with)

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def append(self, _records: object) -> None:
        if self.is_away:
            await asyncio.Event().wait()
        if self._fails_with and (error := self._fails_with.pop(0)) is not None:
            raise error
        self.written += 1


def write(topic: Any, count: int) -> None:
    async def scene() -> None:
        writer = StatusWriter(topic, StatusState())
        await writer.start()
        for number in range(count):
            writer.tell(Unit("c", number), Status(RUNNING, "worker", 1))
        async with asyncio.timeout(60):
            await writer.stop()

    asyncio.run(scene())


def test_a_status_that_cannot_be_written_keeps_no_other_from_being_written() -> None:
    topic = Topic(ClientError("no"), ZeroDivisionError("a bug"))
    write(topic, 4)
    assert topic.written == 2


def test_a_topic_that_is_away_keeps_no_worker_from_stopping(monkeypatch: Any) -> None:
    monkeypatch.setattr(status_writer, "_PATIENCE_S", 0.01)
    topic = Topic()
    topic.is_away = True
    write(topic, 2)
    assert topic.written == 0
