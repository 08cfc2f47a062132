"""Values of a real PostgreSQL: rows that are there, changes, and rows of tables have the same form."""

import asyncio
import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.connect.test_tables import postgres
from tests.support.postgres_server import PostgresServer

from ottla.connect.connectors.sql.database import DatabaseGone
from ottla.connect.connectors.sql.postgres_changes import PostgresChangesTask
from ottla.connect.connectors.sql.table_source import TableSourceTask
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.record import Record
from ottla.connect.running.task import SourceContext

__all__ = ["postgres"]
VALUES = {
    "bools": ("BOOLEAN", "true"),
    "shorts": ("SMALLINT", "-3"),
    "longs": ("BIGINT", "9223372036854775807"),
    "reals": ("REAL", "0.1"),
    "doubles": ("DOUBLE PRECISION", "'NaN'"),
    "exact": ("NUMERIC(30, 10)", "12345678901234567890.0123456789"),
    "any_digits": ("NUMERIC", "1.500"),
    "padded": ("CHAR(4)", "'ab'"),
    "raw": ("BYTEA", "'\\x00ff'"),
    "days": ("DATE", "'2026-01-02'"),
    "times": ("TIME", "'03:04:05.000006'"),
    "zoned_times": ("TIMETZ", "'03:04:05+02'"),
    "stamps": ("TIMESTAMP", "'2026-01-02 03:04:05.000006'"),
    "zoned_stamps": ("TIMESTAMPTZ", "'2026-01-02 03:04:05.000006+02'"),
    "spans": ("INTERVAL", "'1 year 2 days 03:04:05'"),
    "numbers": ("INT[]", "'{1,2,NULL}'"),
    "texts": ("TEXT[]", '\'{"a b",NULL,""}\''),
    "ranges": ("INT4RANGE", "'[1,5)'"),
    "moments": ("TSTZRANGE", "'[2026-01-02 00:00+02,)'"),
    "documents": ("JSONB", '\'{"b": [1, null], "a": 1.0}\''),
    "names": ("UUID", "'6f9619ff-8b86-d011-b42d-00c04fc964ff'"),
    "nets": ("CIDR", "'10.0.0.0/8'"),
    "bits": ("BIT(3)", "B'101'"),
    "coins": ("MONEY", "'12.50'"),
    "points": ("POINT", "'(1,2)'"),
    "nothing": ("TEXT", "NULL"),
}


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[str]:
    """The name of a table that no other test uses, and of its slot and publication. All are removed."""
    made = f"t_{uuid.uuid4().hex[:10]}"
    yield made
    with postgres.connect() as connection:
        connection.execute(f"DROP TABLE IF EXISTS {made} CASCADE")
        connection.execute(f"DROP PUBLICATION IF EXISTS {made}")
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
            (made,),
        )


class Reader:
    """A task, and what it has read."""

    def __init__(self, server: PostgresServer, table: str, **options: str) -> None:
        config = {
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "postgres",
            "database.dbname": "postgres",
            "topic.prefix": "p",
            "table.include.list": f"public.{table}",
            "slot.name": table,
            "publication.name": table,
            "poll.interval.ms": "1",
        }
        self._config = config | {name.replace("_", "."): value for name, value in options.items()}
        self._position: dict[str, Any] | None = None

    def read(self, count: int) -> list[Record]:
        """Return the next records, of a new life."""
        return asyncio.run(self._read(count))

    async def _read(self, count: int) -> list[Record]:
        task = PostgresChangesTask(self._config)
        await task.start(SourceContext("c", 0, lambda _: self._position))
        found: list[Record] = []
        async with asyncio.timeout(60):
            while len(found) < count or not task.may_commit:
                found += await task.poll()
        if found:
            self._position = dict(found[-1].source_offset or {})
            await task.committed()
        await task.stop()
        assert len(found) == count
        return found


def execute(server: PostgresServer, *statements: str) -> None:
    with server.connect() as connection:
        for statement in statements:
            connection.execute(statement)


def read_table(server: PostgresServer, table: str) -> Record:
    async def story() -> Sequence[Record]:
        task = TableSourceTask(
            {
                "connection.url": server.url,
                "mode": "bulk",
                "table.whitelist": table,
                "topic.prefix": "",
                "poll.interval.ms": "1",
            }
        )
        await task.start(SourceContext("c", 0, lambda _: None))
        found = await task.poll()
        await task.stop()
        return found

    (record,) = asyncio.run(story())
    return record


def shown(schema: Any, value: Any) -> Any:
    return json.loads(JsonConverter({"schemas.enable": "false"}).to_bytes("t", schema, value) or b"null")


def test_a_value_has_the_same_form_wherever_it_is_read(postgres: PostgresServer, table: str) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    cells = ", ".join(text for _, text in VALUES.values())
    execute(
        postgres,
        # What the server is set to must not change the form.
        "ALTER DATABASE postgres SET DateStyle = 'German'",
        "ALTER DATABASE postgres SET IntervalStyle = 'iso_8601'",
        "ALTER DATABASE postgres SET bytea_output = 'escape'",
        f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns})",
        f"INSERT INTO {table} VALUES (1, {cells})",
    )
    try:
        reader = Reader(postgres, table, time_precision_mode="connect")
        (there,) = reader.read(1)
        execute(postgres, f"DELETE FROM {table}", f"INSERT INTO {table} VALUES (1, {cells})")
        changed = reader.read(3)[-1]
        polled = read_table(postgres, table)
    finally:
        execute(
            postgres,
            "ALTER DATABASE postgres RESET DateStyle",
            "ALTER DATABASE postgres RESET IntervalStyle",
            "ALTER DATABASE postgres RESET bytea_output",
        )
    row = shown(there.value_schema, there.value)["after"]
    assert shown(changed.value_schema, changed.value)["after"] == row
    assert shown(polled.value_schema, polled.value) == row
    assert row["numbers"] == "{1,2,NULL}"
    assert (row["ranges"], row["zoned_times"], row["spans"]) == (
        "[1,5)",
        "03:04:05+02",
        "1 year 2 days 03:04:05",
    )
    assert (row["doubles"], row["padded"], row["raw"]) == ("NaN", "ab  ", "AP8=")
    assert (row["nothing"], row["documents"]) == (None, '{"a": 1.0, "b": [1, null]}')


def test_times_have_microseconds(postgres: PostgresServer, table: str) -> None:
    execute(
        postgres,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, a TIMESTAMP, b TIMESTAMP(3), c TIME, d TIMESTAMPTZ, "
        "e DATE)",
        f"INSERT INTO {table} VALUES (1, '1970-01-01 00:00:00.000007', '1970-01-01 00:00:00.007', '24:00', "
        "'1970-01-01 00:00:00.000007+00', '0001-01-01 BC')",
    )
    (there,) = Reader(postgres, table).read(1)
    assert there.value["after"] == {
        "id": 1,
        "a": 7,
        "b": 7,
        "c": 86_400_000_000,
        "d": "1970-01-01T00:00:00.000007Z",
        "e": -719_528,
    }


def test_a_change_that_is_not_flushed_yet_is_not_passed(postgres: PostgresServer, table: str) -> None:
    execute(postgres, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    reader = Reader(postgres, table, snapshot_mode="no_data")

    async def story() -> list[int]:
        task = PostgresChangesTask(reader._config)
        await task.start(SourceContext("c", 0, lambda _: None))
        found: list[int] = []
        with postgres.connect() as connection:
            connection.execute("SET synchronous_commit = off")
            for number in range(150):
                connection.execute(f"INSERT INTO {table} VALUES ({number})")
                found += [record.value["after"]["id"] for record in await task.poll()]
                await task.committed()
        async with asyncio.timeout(60):
            while len(found) < 150:
                found += [record.value["after"]["id"] for record in await task.poll()]
        await task.stop()
        return found

    assert asyncio.run(story()) == list(range(150))


def test_a_partitioned_table_is_one_table(postgres: PostgresServer, table: str) -> None:
    execute(
        postgres,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, a TEXT) PARTITION BY RANGE (id)",
        f"CREATE TABLE {table}_low PARTITION OF {table} FOR VALUES FROM (0) TO (10)",
        f"CREATE TABLE {table}_high PARTITION OF {table} FOR VALUES FROM (10) TO (20)",
        f"INSERT INTO {table} VALUES (1, 'x'), (11, 'y')",
    )
    reader = Reader(postgres, table, table_include_list=f"public.{table}.*")
    records = reader.read(2)
    execute(postgres, f"INSERT INTO {table} VALUES (2, 'z')", f"UPDATE {table} SET id = 12 WHERE id = 2")
    records += reader.read(4)
    assert {record.topic for record in records} == {f"p.public.{table}"}
    assert [record.key for record in records] == [{"id": key} for key in (1, 11, 2, 2, 2, 12)]


def test_changes_of_a_dropped_table_are_delivered(postgres: PostgresServer, table: str) -> None:
    execute(
        postgres, f"CREATE TABLE {table} (a TEXT, id INT PRIMARY KEY)", f"INSERT INTO {table} VALUES ('x', 1)"
    )
    reader = Reader(postgres, table)
    reader.read(1)
    execute(postgres, f"UPDATE {table} SET id = 2", f"TRUNCATE {table}", f"DROP TABLE {table}")
    deleted, tombstone, created = reader.read(3)
    assert [deleted.key, tombstone.key, created.key] == [{"id": 1}, {"id": 1}, {"id": 2}]
    assert created.value["after"] == {"a": "x", "id": 2}


def test_a_table_that_was_taken_out_of_the_list_is_not_followed(postgres: PostgresServer, table: str) -> None:
    other = f"{table}_other"
    execute(postgres, *(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in (table, other)))
    try:
        both = Reader(postgres, table, table_include_list=f"public.{table}.*", snapshot_mode="no_data")
        assert both.read(0) == []
        execute(postgres, f"INSERT INTO {other} VALUES (1)", f"INSERT INTO {table} VALUES (2)")
        (record,) = Reader(postgres, table, snapshot_mode="no_data").read(1)
        assert record.topic == f"p.public.{table}"
    finally:
        execute(postgres, f"DROP TABLE {other}")


def test_only_the_rows_that_are_there_leave_no_slot(postgres: PostgresServer, table: str) -> None:
    execute(postgres, f"CREATE TABLE {table} (id INT PRIMARY KEY)", f"INSERT INTO {table} VALUES (1)")
    Reader(postgres, table, snapshot_mode="initial_only").read(1)
    with postgres.connect() as connection:
        slots = connection.execute(
            "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", (table,)
        ).fetchall()
    assert slots == []


def test_columns_that_an_index_includes_are_no_key(postgres: PostgresServer, table: str) -> None:
    execute(
        postgres,
        f"CREATE TABLE {table} (id INT, a TEXT, PRIMARY KEY (id) INCLUDE (a))",
        f"INSERT INTO {table} VALUES (1, 'x')",
    )
    reader = Reader(postgres, table)
    (there,) = reader.read(1)
    execute(postgres, f"ALTER TABLE {table} REPLICA IDENTITY FULL", f"UPDATE {table} SET a = 'y'")
    (changed,) = reader.read(1)
    assert there.key == changed.key == {"id": 1}


def test_a_large_transaction_is_never_held_as_a_whole(postgres: PostgresServer, table: str) -> None:
    execute(postgres, f"CREATE TABLE {table} (id INT PRIMARY KEY, a TEXT)")
    reader = Reader(postgres, table, snapshot_mode="no_data", max_batch_size="500")
    assert reader.read(0) == []
    # More than a stream keeps of what it has received.
    execute(postgres, f"INSERT INTO {table} SELECT n, repeat('x', 1000) FROM generate_series(1, 20000) AS n")

    async def story() -> list[int]:
        task = PostgresChangesTask(reader._config)
        await task.start(SourceContext("c", 0, lambda _: reader._position))
        found: list[int] = []
        async with asyncio.timeout(60):
            while len(found) < 20_000:
                records = await task.poll()
                assert len(records) <= 500
                found += [record.value["after"]["id"] for record in records]
                assert task._stream._arrived_bytes < 10_000_000
            while not task.may_commit:
                await task.poll()
        await task.stop()
        return found

    assert asyncio.run(story()) == list(range(1, 20_001))


def test_a_slot_that_another_connection_reads_is_waited_for(postgres: PostgresServer, table: str) -> None:
    execute(postgres, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    reader = Reader(postgres, table, snapshot_mode="no_data")

    async def story() -> int:
        tasks = [PostgresChangesTask(reader._config) for _ in range(2)]
        for task in tasks:
            await task.start(SourceContext("c", 0, lambda _: None))
        await tasks[0].poll()
        waiting = asyncio.ensure_future(tasks[1].poll())
        with postgres.connect() as connection:
            connection.execute(f"INSERT INTO {table} VALUES (1)")
        await tasks[0].stop()
        async with asyncio.timeout(60):
            records = await waiting or await tasks[1].poll()
        await tasks[1].stop()
        return len(records)

    assert asyncio.run(story()) == 1


def test_a_stream_that_ends_is_an_error(postgres: PostgresServer, table: str) -> None:
    execute(postgres, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    reader = Reader(postgres, table, snapshot_mode="no_data")

    async def story() -> None:
        task = PostgresChangesTask(reader._config)
        await task.start(SourceContext("c", 0, lambda _: None))
        await task.poll()
        execute(
            postgres,
            f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{table}'",
        )
        try:
            async with asyncio.timeout(60):
                while True:
                    await task.poll()
        finally:
            await task.stop()

    with pytest.raises(DatabaseGone, match="terminating connection"):
        asyncio.run(story())
