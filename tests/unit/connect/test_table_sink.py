"""Rows and their offsets in one transaction: a task that has lost its partition writes nothing more."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.connectors.sql.table_sink import TableSinkTask
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT64, struct
from ottla.connect.errors import ConnectError, ToleranceExceeded
from ottla.connect.running.task import SinkContext
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType

WHERE = TopicPartition("t", 0)
ROW = struct({"id": INT64})


def _record(offset: int, value: object = None) -> Record:
    origin = ConsumerRecord("t", 0, -1, TimestampType.CREATE_TIME, offset, 0, None, None, ())
    return Record("t", 0, None, None, ROW, {"id": offset} if value is None else value, origin=origin)


async def _task(path: Path, reported: list[int] | None = None) -> tuple[TableSinkTask, int | None]:
    """Start a task, and return from where it goes on."""

    def report(record: Record, error: Exception) -> None:
        if reported is None:
            raise ToleranceExceeded from error
        assert record.origin is not None
        reported.append(record.origin.offset)

    task = TableSinkTask({"connection.url": f"jdbc:sqlite:{path}", "auto.create": "true"})
    await task.start(SinkContext("c", 0, report))
    return task, (await task.opened(frozenset({WHERE}))).get(WHERE)


def _ids(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM t ORDER BY id")]


def test_a_task_goes_on_where_the_rows_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, position = await _task(tmp_path / "db")
        assert position is None
        await first.put([_record(0), _record(1)])
        await first.stop()
        second, position = await _task(tmp_path / "db")
        assert position == 2
        await second.stop()

    asyncio.run(scenario())


def test_a_task_that_was_replaced_cannot_write(tmp_path: Path) -> None:
    async def scenario() -> None:
        old, _ = await _task(tmp_path / "db")
        await old.put([_record(0)])
        new, position = await _task(tmp_path / "db")
        assert position == 1
        await new.put([_record(1), _record(2)])
        with pytest.raises(ConnectError, match="lost the partition"):
            await old.put([_record(1)])
        assert _ids(tmp_path / "db") == [0, 1, 2]
        for task in (old, new):
            await task.stop()

    asyncio.run(scenario())


def test_a_row_that_is_refused_is_reported_and_the_others_are_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        reported: list[int] = []
        task, _ = await _task(tmp_path / "db", reported)
        await task.put([_record(0), _record(1, {"id": None}), _record(2), _record(3)])
        assert (_ids(tmp_path / "db"), reported) == ([0, 2, 3], [1])
        await task.stop()

    asyncio.run(scenario())
