"""Rows of tables, as a task reads them: by number, by time, by both, all of them, or of a query."""

import asyncio
import datetime
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.connectors.sql import table_source
from ottla.connect.connectors.sql.table_source import TableSourceTask
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT64, STRING, Field, Schema, Type, optional
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Offset
from ottla.connect.running.task import SourceContext

(PLUGIN,) = table_source.PLUGINS
NOON = "2026-01-01 12:00:0"
NOON_MS = 1767268800_000


class Tables:
    """A file of SQLite, and tasks that read it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.url = f"jdbc:sqlite:{path}"

    def run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    def config(self, mode: str, **options: str) -> dict[str, str]:
        named = {name.replace("_", "."): value for name, value in options.items()}
        defaults = {"topic.prefix": "p-", "poll.interval.ms": "1", "tables": "t"}
        return {"connection.url": self.url, "mode": mode, **defaults, **named}

    def read(
        self, mode: str, polls: int = 1, position: Mapping[str, Any] | None = None, **options: str
    ) -> list[Record]:
        """Start a task and poll it several times, as long as each poll has something."""

        async def story() -> list[Record]:
            task = TableSourceTask(self.config(mode, **options))
            await task.start(
                SourceContext("c", 0, lambda partition: None if position is None else dict(position))
            )
            found = [record for _ in range(polls) for record in await task.poll()]
            await task.stop()
            return found

        return asyncio.run(story())


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "db")


def ids(records: list[Record]) -> list[Any]:
    return [record.value["id"] for record in records]


def test_rows_come_once_in_the_order_of_their_numbers(tables: Tables) -> None:
    tables.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO t VALUES (2, 'b'), (1, NULL)"
    )
    records = tables.read("incrementing", batch_max_rows="10")
    schema = Schema(Type.STRUCT, name="t", fields=(Field("id", INT64), Field("name", optional(STRING))))
    assert [(record.topic, record.value_schema, record.value) for record in records] == [
        ("p-t", schema, {"id": 1, "name": None}),
        ("p-t", schema, {"id": 2, "name": "b"}),
    ]
    assert [record.source_offset for record in records] == [{"incrementing": 1}, {"incrementing": 2}]
    assert records[0].source_partition == {"protocol": "1", "table": "t"}
    assert (records[0].key, records[0].partition) == (None, None)
    assert ids(tables.read("incrementing", position={"incrementing": 1})) == [2]
    assert ids(tables.read("incrementing", position={"incrementing": 2})) == []


def test_a_batch_has_so_many_rows_and_the_next_one_follows_at_once(tables: Tables) -> None:
    tables.run("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3), (4), (5)")
    options: dict[str, Any] = {"batch_max_rows": "2", "poll_interval_ms": "1000000"}
    assert ids(tables.read("incrementing", **options)) == [1, 2]
    assert ids(tables.read("incrementing", polls=3, **options)) == [1, 2, 3, 4, 5]


def test_a_table_without_news_rests_while_others_are_read(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses_s = []

    async def sleep(seconds: float) -> None:
        pauses_s.append(seconds)

    tables.run("CREATE TABLE a (id INTEGER PRIMARY KEY)", "CREATE TABLE b (id INTEGER PRIMARY KEY)")
    tables.run("INSERT INTO b VALUES (1)")
    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def story() -> None:
        task = TableSourceTask(tables.config("incrementing", tables="a,b", poll_interval_ms="1000000"))
        await task.start(SourceContext("c", 0, lambda partition: None))
        (record,) = await task.poll()
        assert (record.topic, record.source_partition) == ("p-b", {"protocol": "1", "table": "b"})
        assert pauses_s == []
        tables.run("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (2)")
        assert await task.poll() == []
        # It does not spin, and is not asleep for the whole interval.
        assert pauses_s == [0.2]
        await task.stop()

    asyncio.run(story())


def test_all_rows_come_each_time(tables: Tables) -> None:
    tables.run("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (2), (1)")
    records = tables.read("bulk", polls=1, batch_max_rows="1")
    assert ids(records) == [2, 1]
    assert {str(record.source_offset) for record in records} == {"{}"}
    # Whoever has more rows than a batch may have must not be asked again at once.
    assert ids(tables.read("bulk", polls=2, batch_max_rows="1", poll_interval_ms="1000")) == [2, 1]


def make_times(tables: Tables) -> None:
    tables.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP)",
        f"INSERT INTO t VALUES (4, '{NOON}1'), (3, '{NOON}2'), (2, '{NOON}2'), (1, '{NOON}3'), (9, NULL)",
    )


def test_rows_of_the_same_time_are_not_divided(tables: Tables) -> None:
    make_times(tables)
    records = tables.read("timestamp", timestamp_column_name="at", batch_max_rows="2")
    assert (ids(records)[0], sorted(ids(records)[1:])) == (4, [2, 3])
    last = records[-1].source_offset
    assert last == {"timestamp": NOON_MS + 2000, "timestamp_nanos": 0, "timestamp_text": f"{NOON}2"}
    assert ids(tables.read("timestamp", position=last, timestamp_column_name="at")) == [1]
    # A position that somebody set, or another worker has written, has no text.
    tables.run("UPDATE t SET at = at || '.500'")
    numbers = {"timestamp": NOON_MS + 2000, "timestamp_nanos": 499_000_000}
    assert sorted(ids(tables.read("timestamp", position=numbers, timestamp_column_name="at"))) == [1, 2, 3]
    numbers["timestamp_nanos"] = 500_000_000
    assert ids(tables.read("timestamp", position=numbers, timestamp_column_name="at")) == [1]


def test_by_time_and_number_a_batch_may_end_within_a_time(tables: Tables) -> None:
    make_times(tables)
    options: dict[str, Any] = {
        "timestamp_column_name": "at",
        "incrementing_column_name": "id",
        "batch_max_rows": "2",
    }
    records = tables.read("timestamp+incrementing", **options)
    assert ids(records) == [4, 2]
    position = dict(records[-1].source_offset or {})
    assert position.pop("incrementing") == 2
    for number, rest in ((2, [3, 1]), (3, [1])):
        there = {**position, "incrementing": number}
        assert ids(tables.read("timestamp+incrementing", position=there, **options)) == rest


def test_young_rows_wait(tables: Tables) -> None:
    now = datetime.datetime.now(datetime.UTC)
    tables.run("CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP)")
    for number, age_s in enumerate((7200, 1800)):
        when = (now - datetime.timedelta(seconds=age_s)).strftime("%Y-%m-%d %H:%M:%S.000")
        tables.run(f"INSERT INTO t VALUES ({number}, '{when}')")
    hour: dict[str, Any] = {"timestamp_delay_interval_ms": "3600000", "timestamp_column_name": "at"}
    assert ids(tables.read("timestamp", **hour)) == [0]
    assert ids(tables.read("timestamp", timestamp_column_name="at")) == [0, 1]


def test_reading_by_time_may_begin_later(tables: Tables) -> None:
    tables.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP)",
        "INSERT INTO t VALUES (1, '2026-01-01 12:00:00.000'), (2, '2026-01-01 12:00:01.000')",
    )
    options: dict[str, Any] = {"timestamp_column_name": "at"}
    assert ids(tables.read("timestamp", timestamp_initial=str(NOON_MS), **options)) == [2]
    assert ids(tables.read("timestamp", timestamp_initial=str(NOON_MS - 1), **options)) == [1, 2]
    assert ids(tables.read("timestamp", timestamp_initial=" -1", **options)) == []
    # Where it went on counts more.
    position = {"timestamp": NOON_MS - 1, "timestamp_nanos": 0}
    assert ids(tables.read("timestamp", position=position, timestamp_initial="-1", **options)) == [1, 2]
    both: dict[str, Any] = {**options, "incrementing_column_name": "id", "timestamp_initial": str(NOON_MS)}
    # Of the first time all numbers are read.
    assert ids(tables.read("timestamp+incrementing", **both)) == [1, 2]


def test_a_query_is_read_as_a_table_is(tables: Tables) -> None:
    tables.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO t VALUES (1, 5), (2, 6)")
    options: dict[str, Any] = {
        "query": "SELECT id, n * 2 AS twice FROM t ; ",
        "incrementing_column_name": "id",
    }
    records = tables.read("incrementing", position={"incrementing": 1}, **options)
    ((record),) = records
    assert (record.topic, record.value) == ("p-", {"id": 2, "twice": 12})
    assert record.source_partition == {"query": "query"}
    masked: dict[str, Any] = {"query_masked": options["query"], "incrementing_column_name": "id"}
    assert ids(tables.read("incrementing", **masked)) == [1, 2]


@pytest.mark.parametrize(
    ("mode", "options", "problem"),
    [
        ("incrementing", {"tables": "gone"}, "no table 'gone'"),
        ("incrementing", {"tables": "pair"}, "pair has no key of one column"),
        ("incrementing", {"query": "SELECT 1"}, "the query has no key of one column"),
        ("incrementing", {"incrementing_column_name": "x"}, "t has no column 'x'"),
        ("timestamp", {}, "timestamp.column.name is missing"),
        ("timestamp", {"timestamp_column_name": "x"}, "t has no column 'x'"),
    ],
)
def test_what_cannot_be_read_is_said_at_the_start(
    tables: Tables, mode: str, options: dict[str, Any], problem: str
) -> None:
    tables.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY)", "CREATE TABLE pair (a INT, b INT, PRIMARY KEY (a, b))"
    )
    with pytest.raises(ConnectError, match=problem):
        tables.read(mode, **options)


# Which tables, and how they are divided


def divided(tables: Tables, tasks_max: int, **options: str) -> list[str]:
    config = {**tables.config("bulk", **options), "tables": "overwritten"}
    return [task["tables"] for task in PLUGIN.task_configs(config, tasks_max)]


def test_tables_are_divided_among_tasks(tables: Tables) -> None:
    for name in ("a", "b", "c", "ottla_connect_offsets"):
        tables.run(f"CREATE TABLE {name} (id INTEGER)")
    assert divided(tables, 1) == ["a,b,c"]
    assert divided(tables, 2) == ["a,c", "b"]
    assert divided(tables, 5) == ["a", "b", "c"]
    assert divided(tables, 5, table_whitelist="c, b") == ["c", "b"]
    assert divided(tables, 1, table_blacklist="b,x*") == ["a,c"]
    assert divided(tables, 1, table_include_list="public.a,b") == ["a,b"]
    assert divided(tables, 1, table_exclude_list="a,public.c") == ["b"]
    query = tables.config("bulk", query="SELECT 1")
    assert PLUGIN.task_configs(query, 3) == [query]


def test_a_database_without_a_table_to_read_is_an_error(tables: Tables) -> None:
    tables.run("CREATE TABLE ottla_connect_offsets (id INTEGER)")
    with pytest.raises(ConnectError, match="no table to read"):
        divided(tables, 2)


@pytest.mark.parametrize(
    ("options", "refresh_ms"),
    [
        ({}, 60_000),
        ({"table_poll_interval_ms": "5"}, 5),
        ({"table_whitelist": "t"}, None),
        ({"query": "SELECT 1"}, None),
    ],
)
def test_tables_are_looked_for_again_where_that_can_change_something(
    tables: Tables, options: dict[str, str], refresh_ms: int | None
) -> None:
    assert PLUGIN.refresh_ms(tables.config("bulk", **options)) == refresh_ms


@pytest.mark.parametrize(
    ("mode", "options", "wrong"),
    [
        ("bulk", {}, {}),
        ("timestamp", {"timestamp_column_name": "at"}, {}),
        ("incrementing", {}, {}),
        ("timestamp", {"timestamp_column_name": "a,b"}, {"timestamp.column.name": "several columns"}),
        ("timestamp", {}, {"timestamp.column.name": "is required in this mode"}),
        ("timestamp+incrementing", {}, {"timestamp.column.name": "is required in this mode"}),
        ("bulk", {"query": "q", "table_whitelist": "t"}, {"query": "mutually exclusive"}),
        ("incrementing", {"query": "q"}, {"incrementing.column.name": "required for a query"}),
        ("incrementing", {"query": "q", "incrementing_column_name": "id"}, {}),
        ("bulk", {"connection_url": "jdbc:oracle:x"}, {"connection.url": "Only jdbc:sqlite:"}),
    ],
)
def test_configurations_are_checked(
    tables: Tables, mode: str, options: dict[str, str], wrong: dict[str, str]
) -> None:
    errors = PLUGIN.errors(tables.config(mode, **options))
    assert sorted(errors) == sorted(wrong)
    for name, text in wrong.items():
        assert text in " ".join(errors[name])


@pytest.mark.parametrize(
    ("offset", "problem"),
    [
        (({"table": "t"}, {"incrementing": 1, "timestamp": 2, "timestamp_nanos": 3}), None),
        (({"query": "q"}, {"timestamp_text": "x"}), None),
        (({"table": "t"}, None), None),
        (({}, None), "'table' or 'query'"),
        (({"table": "t"}, {"other": 1}), "should not contain the key 'other'"),
        (
            ({"table": "t"}, {"incrementing": "1"}),
            "'incrementing' key in the offset should be a whole number",
        ),
    ],
)
def test_offsets_that_are_set_by_hand_are_checked(offset: Offset, problem: str | None) -> None:
    if problem is None:
        PLUGIN.check_offsets({}, [offset])
    else:
        with pytest.raises(ConnectError, match=problem):
            PLUGIN.check_offsets({}, [offset])
