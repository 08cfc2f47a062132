"""Rows and their offsets in one transaction: a task that has lost its partition writes nothing more."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.connectors.sql import table_sink
from ottla.connect.connectors.sql.database import DatabaseError, DatabaseGone, RowRefused
from ottla.connect.connectors.sql.postgres import refusal_of, with_parameters
from ottla.connect.connectors.sql.table_sink import TableSinkTask
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT64, STRING, Schema, optional, struct
from ottla.connect.errors import ConnectError, ToleranceExceeded
from ottla.connect.running.task import RetryLater, SinkContext
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType

(PLUGIN,) = table_sink.PLUGINS
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


# What becomes of a record

PAIR = struct({"a": INT64, "b": optional(STRING)})


def _keyed(
    offset: int, value: Any, key: Any = None, schema: Schema | None = PAIR, key_schema: Schema | None = None
) -> Record:
    origin = ConsumerRecord("t", 3, -1, TimestampType.CREATE_TIME, offset, 0, None, None, ())
    return Record("t", 3, key_schema, key, schema if value is not None else None, value, origin=origin)


def _put(path: Path, *records: Record, **options: str) -> list[str]:
    """Put records in one go. Returns what was refused, and why."""
    reported: list[str] = []

    def report(record: Record, error: Exception) -> None:
        assert record.origin is not None
        reported.append(f"{record.origin.offset}: {error}")

    async def story() -> None:
        named = {name.replace("_", "."): value for name, value in options.items()}
        config = {"connection.url": f"jdbc:sqlite:{path}", "auto.create": "true", **named}
        task = TableSinkTask(config)
        await task.start(SinkContext("c", 0, report))
        await task.opened(frozenset({TopicPartition("t", 3)}))
        await task.put(records)
        await task.flush()
        await task.stop()

    asyncio.run(story())
    return reported


def _rows(path: Path, table: str = "t") -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def _columns(path: Path, table: str = "t") -> list[tuple[str, str, bool, bool]]:
    """Return the columns of a table: name, type, whether it must have a value, whether it is of the key."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return [(row[1], row[2], bool(row[3]), bool(row[5])) for row in rows]


def test_a_table_is_made_with_the_columns_and_the_key_of_the_records(tmp_path: Path) -> None:
    path = tmp_path / "db"
    assert _put(path, _keyed(0, {"a": 1, "b": "x"}), pk_mode="record_value", pk_fields="b") == []
    assert _columns(path) == [("a", "INTEGER", True, False), ("b", "TEXT", True, True)]
    _put(path, _keyed(1, {"a": 1, "b": None}), table_name_format="all_${topic}")
    assert _columns(path, "all_t") == [("a", "INTEGER", True, False), ("b", "TEXT", False, False)]
    assert _rows(path, "all_t") == [(1, None)]


def test_a_table_that_may_not_be_changed_says_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with pytest.raises(ConnectError, match=r"'t' has no such table: add them, or set auto\.create=true"):
        _put(path, _keyed(0, {"a": 1, "b": "x"}), auto_create="false")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(ConnectError, match=r"has no columns b: add them, or set auto\.evolve=true"):
        _put(path, _keyed(0, {"a": 1, "b": "x"}))
    assert _put(path, _keyed(0, {"a": 1, "b": "x"}), auto_evolve="true") == []
    assert _rows(path) == [(1, "x")]


@pytest.mark.parametrize(
    "table", ["ottla_connect_offsets", "main.ottla_connect_offsets", "Ottla_Connect_Offsets"]
)
def test_no_record_says_where_connectors_go_on(tmp_path: Path, table: str) -> None:
    path = tmp_path / "db"
    assert _put(path, _keyed(0, {"a": 1, "b": "x"})) == []
    (refused,) = _put(path, _keyed(1, {"a": 1, "b": "x"}), auto_evolve="true", table_name_format=table)
    assert "is for offsets" in refused
    assert len(_columns(path, "ottla_connect_offsets")) == 4


def test_names_of_fields_are_no_sql(tmp_path: Path) -> None:
    path = tmp_path / "db"
    name = 'a" INT); DROP TABLE t; --'
    schema = struct({"a": INT64, name: INT64, "100%s": INT64})
    assert _put(path, _keyed(0, {"a": 1, name: 2, "100%s": 3}, schema=schema)) == []
    assert [column[0] for column in _columns(path)] == ["a", name, "100%s"]
    assert _rows(path) == [(1, 2, 3)]


def test_postgresql_takes_names_with_percent_signs_for_names() -> None:
    from psycopg._queries import PostgresQuery
    from psycopg.adapt import Transformer

    query = PostgresQuery(Transformer())
    query.convert(with_parameters('INSERT INTO "t%s" ("100%", "a""%b""c") VALUES (%s, %s)'), [1, 2])
    assert query.query == b'INSERT INTO "t%s" ("100%", "a""%b""c") VALUES ($1, $2)'


def test_only_the_fields_that_are_wanted_are_written(tmp_path: Path) -> None:
    path = tmp_path / "db"
    _put(path, _keyed(0, {"a": 1, "b": "x"}), fields_whitelist="a")
    assert _columns(path) == [("a", "INTEGER", True, False)]


def test_the_place_in_the_topic_can_be_the_key(tmp_path: Path) -> None:
    path = tmp_path / "db"
    _put(path, _keyed(7, {"a": 1}, schema=None), pk_mode="kafka")
    assert [column[0] for column in _columns(path)] == [
        "a",
        "__connect_topic",
        "__connect_partition",
        "__connect_offset",
    ]
    assert _rows(path) == [(1, "t", 3, 7)]
    other = tmp_path / "other"
    _put(other, _keyed(7, {"a": 1}, schema=None), pk_mode="kafka", pk_fields="x,y,z")
    assert [column[0] for column in _columns(other) if column[3]] == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("fields", "columns", "row"),
    [
        ("", ["k", "l"], (9, "x", 1, 2)),
        ("l", ["l"], (9, "x", 2)),
    ],
)
def test_all_fields_of_the_key_are_columns_unless_some_are_named(
    tmp_path: Path, fields: str, columns: list[str], row: tuple[Any, ...]
) -> None:
    path = tmp_path / "db"
    record = _keyed(0, {"a": 9, "b": "x"}, {"k": 1, "l": 2})
    assert _put(path, record, pk_mode="record_key", pk_fields=fields) == []
    assert [column[0] for column in _columns(path) if column[3]] == columns
    assert _rows(path) == [row]


def test_a_single_value_is_a_key_of_one_column(tmp_path: Path) -> None:
    path = tmp_path / "db"
    _put(path, _keyed(0, {"a": 9, "b": "x"}, "me"), pk_mode="record_key", pk_fields="id")
    assert _rows(path) == [(9, "x", "me")]


@pytest.mark.parametrize(
    ("record", "options", "problem"),
    [
        (_keyed(0, {"a": 1, "b": "x"}), {"pk_mode": "record_key"}, "the record has no key"),
        (_keyed(0, {"a": 1, "b": "x"}, 1), {"pk_mode": "record_key"}, "the key is a single value"),
        (_keyed(0, {"a": 1}, 1), {"pk_mode": "record_key", "pk_fields": "a,b"}, "the key is a single value"),
        (_keyed(0, {"a": 1, "b": "x"}), {"pk_mode": "record_value"}, "pk.fields names nothing"),
        (_keyed(0, {"a": 1}), {"pk_mode": "record_value", "pk_fields": "a,c"}, r"pk.fields names \['c'\]"),
        (_keyed(0, "text", schema=STRING), {}, "the value is not a struct"),
        (_keyed(0, None, 1), {"pk_mode": "record_key", "pk_fields": "a"}, "set delete.enabled=true"),
        (_keyed(0, None), {"delete_enabled": "true"}, "set delete.enabled=true"),
        # Whoever may write to the topic can send these. They must not stop the rows of others.
        (_keyed(0, {"a": "\ud800"}, schema=None), {}, "surrogates not allowed"),
        (_keyed(0, {"a\0b": 1}, schema=None), {}, "null character"),
        (_keyed(0, {"a": 1, "A": 2}, schema=None), {}, "duplicate column"),
        (_keyed(0, {f"c{n}": 1 for n in range(2100)}, schema=None), {}, "too many columns"),
        (_keyed(0, {}, schema=None), {}, "no fields"),
        (_keyed(0, {"a": 1}, {"x": 1}), {"pk_mode": "record_key", "pk_fields": "k"}, r"no \['k'\]"),
        (_keyed(0, {"a": 1}, {}), {"pk_mode": "record_key"}, "the key has no fields"),
    ],
)
def test_a_record_that_is_no_row_is_reported(
    tmp_path: Path, record: Record, options: dict[str, str], problem: str
) -> None:
    (refused,) = _put(tmp_path / "db", record, **options)
    assert re.search(problem, refused)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (psycopg.errors.ProgramLimitExceeded(), RowRefused),
        (psycopg.errors.TooManyColumns(), RowRefused),
        (psycopg.errors.UniqueViolation(), RowRefused),
        (psycopg.errors.NumericValueOutOfRange(), RowRefused),
        (psycopg.errors.AdminShutdown(), DatabaseGone),
        (psycopg.errors.DiskFull(), DatabaseGone),
        (psycopg.OperationalError(), DatabaseGone),
        (psycopg.errors.UndefinedTable(), DatabaseError),
    ],
)
def test_what_postgresql_never_takes_is_not_tried_for_ever(
    error: psycopg.Error, meaning: type[DatabaseError]
) -> None:
    assert type(refusal_of(error)) is meaning


def test_rows_are_written_and_deleted_in_the_order_of_the_records(tmp_path: Path) -> None:
    path = tmp_path / "db"
    options = {"pk_mode": "record_key", "insert_mode": "upsert", "delete_enabled": "true"}
    value = {"b": "x"}
    records = [
        _keyed(0, value, {"k": 1}, None),
        _keyed(1, None, {"k": 1}),
        _keyed(2, value, {"k": 2}, None),
        _keyed(3, {"b": "y"}, {"k": 2}, None),
        _keyed(4, value, {"k": 1}, None),
        _keyed(5, None, {"k": 3}),
    ]
    assert _put(path, *records, **options) == []
    assert sorted(_rows(path)) == [("x", 1), ("y", 2)]
    # Where all columns are of the key there is nothing to change.
    other = tmp_path / "other"
    same = _keyed(0, {"k": 1}, {"k": 1}, None)
    again = _keyed(1, {"k": 1}, {"k": 1}, None)
    assert _put(other, same, again, **options) == []
    assert _rows(other) == [(1,)]


def test_an_update_changes_rows_that_are_there_and_makes_none(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (k INTEGER, b TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
        connection.commit()
    options = {"pk_mode": "record_key", "insert_mode": "update"}
    records = [_keyed(0, {"b": "new"}, {"k": 1}, None), _keyed(1, {"b": "new"}, {"k": 9}, None)]
    assert _put(path, *records, **options) == []
    assert _rows(path) == [(1, "new"), (2, "old")]


def test_what_has_fields_inside_becomes_text(tmp_path: Path) -> None:
    path = tmp_path / "db"
    _put(path, _keyed(0, {"a": [1, 2], "b": {"c": True}}, schema=None))
    assert _rows(path) == [("[1,2]", '{"c":true}')]


def test_a_database_that_is_away_is_asked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise DatabaseGone("away")

    async def story() -> None:
        task, _ = await _task(tmp_path / "db", [])
        monkeypatch.setattr(task._database, "transact", gone)
        with pytest.raises(RetryLater, match="away"):
            await task.put([_record(0)])
        await task.stop()

    asyncio.run(story())


def test_rows_behind_a_refused_one_wait_until_its_report_is_written(tmp_path: Path) -> None:
    async def refuse() -> None:
        raise ConnectError("no topic for dead letters")

    async def story() -> None:
        task = TableSinkTask({"connection.url": f"jdbc:sqlite:{tmp_path / 'db'}", "auto.create": "true"})
        await task.start(SinkContext("c", 0, lambda record, error: None, refuse))
        await task.opened(frozenset({WHERE}))
        with pytest.raises(ConnectError, match="dead letters"):
            await task.put([_record(0), _record(1, {"id": None}), _record(2), _record(3)])
        await task.stop()
        after, position = await _task(tmp_path / "db")
        await after.stop()
        # The record that was refused is read again.
        assert (_ids(tmp_path / "db"), position) == ([0], 1)

    asyncio.run(story())


def test_rows_before_a_refused_one_are_not_put_again_when_the_database_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        reported: list[int] = []
        task, _ = await _task(tmp_path / "db", reported)
        transact = task._database.transact  # type: ignore[union-attr]  # it was started
        is_half_done = False

        def going(*arguments: Any) -> None:
            nonlocal is_half_done
            if is_half_done:
                raise DatabaseGone("away")
            transact(*arguments)
            is_half_done = 1 in _ids(tmp_path / "db")

        monkeypatch.setattr(task._database, "transact", going)
        records = [_record(0), _record(1), _record(2), _record(3, {"id": None})]
        with pytest.raises(RetryLater) as away:
            await task.put(records)
        monkeypatch.undo()
        await task.put(records[away.value.done :])
        await task.stop()
        assert (reported, _ids(tmp_path / "db")) == ([3], [0, 1, 2])

    asyncio.run(story())


def test_offsets_that_are_set_by_hand_are_where_a_task_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "db"
    other = TopicPartition("t", 1)
    config = {"connection.url": f"jdbc:sqlite:{path}"}
    alter = PLUGIN.alter_sink_offsets
    assert alter is not None

    async def positions() -> dict[TopicPartition, int]:
        task = TableSinkTask(config)
        await task.start(SinkContext("c", 0, lambda record, error: None))
        found = await task.opened(frozenset({WHERE, other}))
        await task.stop()
        return found

    alter("c", config, {WHERE: 5, other: 6})
    alter("d", config, {WHERE: 9})
    assert asyncio.run(positions()) == {WHERE: 5, other: 6}
    alter("c", config, {WHERE: None, other: 7})
    assert asyncio.run(positions()) == {other: 7}
    alter("c", config, None)
    assert asyncio.run(positions()) == {}
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("SELECT connector FROM ottla_connect_offsets WHERE next_offset >= 0")
        assert kept.fetchall() == [("d",)]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({}, []),
        ({"insert.mode": "upsert"}, ["pk.mode"]),
        ({"insert.mode": "update", "pk.mode": "record_key"}, []),
        ({"delete.enabled": "true"}, ["delete.enabled"]),
        ({"delete.enabled": "true", "pk.mode": "record_value"}, ["delete.enabled"]),
        ({"delete.enabled": "true", "pk.mode": "record_key"}, []),
        ({"connection.url": "jdbc:mysql:x"}, ["connection.url"]),
    ],
)
def test_configurations_are_checked(options: dict[str, str], wrong: list[str]) -> None:
    assert sorted(PLUGIN.errors({"connection.url": "jdbc:sqlite:x", **options})) == wrong


def test_as_many_tasks_as_may_be_share_the_partitions() -> None:
    assert PLUGIN.task_configs({"a": "b"}, 3) == [{"a": "b"}] * 3
