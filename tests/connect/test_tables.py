"""Tables to topics and back, with SQLite and with PostgreSQL."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from psycopg.errors import UndefinedTable
from tests.connect.reading import read_topic
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode
from tests.support.postgres_server import PostgresServer

SOURCE = "io.confluent.connect.jdbc.JdbcSourceConnector"
SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"
JSON = {
    "value_converter": "org.apache.kafka.connect.json.JsonConverter",
    "key_converter": "org.apache.kafka.connect.json.JsonConverter",
}


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


class _Database:
    """A database for one test: where it is, and a way to run statements."""

    def __init__(self, url: str, run: Callable[[str], list[Any]]) -> None:
        self.url = url
        self.run = run

    def rows(self, statement: str) -> list[Any]:
        """Return what a query finds, nothing if its table does not exist yet."""
        try:
            return self.run(statement)
        except (sqlite3.OperationalError, UndefinedTable):
            return []


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> _Database:
    if request.param == "sqlite":
        path = tmp_path / "shop.db"

        def run(statement: str) -> list[Any]:
            with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
                return connection.execute(statement).fetchall()

        return _Database(f"jdbc:sqlite:{path}", run)
    server = request.getfixturevalue("postgres")

    def run_there(statement: str) -> list[Any]:
        with server.connect() as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    return _Database(server.url, run_there)


def _payloads(node: OttlaNode, topic: str, count: int) -> list[Any]:
    return [json.loads(record.value)["payload"] for record in read_topic(node.bootstrap, topic, count)]


def test_rows_by_an_increasing_column_reach_the_topic_and_another_table_once(
    worker: ConnectProcess, node: OttlaNode, database: _Database, name: str
) -> None:
    table = name.replace("-", "_")
    database.run(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, item VARCHAR(20), price DECIMAL(10, 2))")
    database.run(f"INSERT INTO {table} VALUES (1, 'pen', 1.25), (2, NULL, 3.50), (3, 'ink', NULL)")
    worker.create(
        f"{name}-in",
        connector_class=SOURCE,
        connection_url=database.url,
        mode="incrementing",
        table_whitelist=table,
        topic_prefix="rows-",
        poll_interval_ms="100",
        batch_max_rows="2",
        **JSON,
    )
    worker.create(
        f"{name}-out",
        connector_class=SINK,
        connection_url=database.url,
        topics=f"rows-{table}",
        table_name_format=f"{table}_copy",
        auto_create="true",
        insert_mode="insert",
        **JSON,
    )
    payloads = _payloads(node, f"rows-{table}", 3)
    assert [(row["id"], row["item"]) for row in payloads] == [(1, "pen"), (2, None), (3, "ink")]

    database.run(f"INSERT INTO {table} VALUES (10, 'pot', 99.99)")

    assert _payloads(node, f"rows-{table}", 4)[3]["id"] == 10
    position = {"partition": {"protocol": "1", "table": table}, "offset": {"incrementing": 10}}
    worker.wait_for(f"/connectors/{name}-in/offsets", lambda answer: answer == {"offsets": [position]})
    worker.wait_for("/", lambda _: len(database.rows(f"SELECT * FROM {table}_copy")) == 4)

    # A table that keeps offsets with the rows is not written twice, wherever the group begins.
    worker.ask("PUT", f"/connectors/{name}-out/stop")
    worker.wait_for(f"/connectors/{name}-out/status", lambda answer: answer["tasks"] == [])
    worker.ask("PUT", f"/connectors/{name}-out/resume")
    worker.wait_until_running(f"{name}-out")
    database.run(f"INSERT INTO {table} VALUES (11, 'cup', 0.01)")
    worker.wait_for("/", lambda _: len(database.rows(f"SELECT * FROM {table}_copy")) >= 5)
    copied = database.run(f"SELECT id, item, price FROM {table}_copy ORDER BY id")
    original = database.run(f"SELECT id, item, price FROM {table} ORDER BY id")
    assert [(row[0], row[1], row[2] and float(row[2])) for row in copied] == [
        (row[0], row[1], row[2] and float(row[2])) for row in original
    ]
    assert worker.ask("DELETE", f"/connectors/{name}-in") == (204, None)
    assert worker.ask("DELETE", f"/connectors/{name}-out") == (204, None)


def test_changed_rows_are_found_by_time_and_upserted(
    worker: ConnectProcess, node: OttlaNode, database: _Database, name: str
) -> None:
    table = name.replace("-", "_")
    database.run(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, state VARCHAR(20), at TIMESTAMP)")
    database.run(
        f"INSERT INTO {table} VALUES (1, 'new', '2026-01-01 10:00:00'), (2, 'new', '2026-01-01 10:00:00'), "
        "(3, 'new', '2026-01-01 10:00:01')"
    )
    worker.create(
        f"{name}-in",
        connector_class=SOURCE,
        connection_url=database.url,
        mode="timestamp",
        timestamp_column_name="at",
        table_whitelist=table,
        topic_prefix="changed-",
        poll_interval_ms="100",
        batch_max_rows="1",
        **JSON,
    )
    worker.create(
        f"{name}-out",
        connector_class=SINK,
        connection_url=database.url,
        topics=f"changed-{table}",
        table_name_format=f"{table}_copy",
        auto_create="true",
        insert_mode="upsert",
        pk_mode="record_value",
        pk_fields="id",
        **JSON,
    )
    # Rows of the same time stay together, although a batch has one row.
    assert sorted(row["id"] for row in _payloads(node, f"changed-{table}", 3)) == [1, 2, 3]

    database.run(f"UPDATE {table} SET state = 'paid', at = '2026-01-01 10:00:02' WHERE id = 2")

    worker.wait_for(
        "/",
        lambda _: (
            database.rows(f"SELECT id, state FROM {table}_copy ORDER BY id")
            == [(1, "new"), (2, "paid"), (3, "new")]
        ),
    )
    assert worker.ask("DELETE", f"/connectors/{name}-in") == (204, None)
    assert worker.ask("DELETE", f"/connectors/{name}-out") == (204, None)


def test_what_the_java_connector_has_and_this_one_lacks_is_named(worker: ConnectProcess, name: str) -> None:
    body = {
        "connector.class": SOURCE,
        "connection.url": "jdbc:oracle:thin:@h",
        "mode": "incrementing",
        "topic.prefix": "x",
        "db.timezone": "Europe/Prague",
    }

    status, answer = worker.ask("PUT", f"/connectors/{name}/config", body)

    assert status == 400
    assert "db.timezone is not supported: times are read in UTC" in answer["message"]
    del body["db.timezone"]
    assert (
        "Only jdbc:sqlite: and jdbc:postgresql: are supported"
        in worker.ask("PUT", f"/connectors/{name}/config", body)[1]["message"]
    )


def test_tables_that_come_later_are_read_and_those_of_sinks_are_not(
    worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "growing.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in ("first", "left_out", "ottla_connect_offsets"):
            connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)")
            connection.execute(f"INSERT INTO {table} VALUES (1)")
        worker.create(
            name,
            connector_class=SOURCE,
            connection_url=f"jdbc:sqlite:{path}",
            mode="incrementing",
            topic_prefix=f"{name}-",
            table_exclude_list="left.*",
            table_poll_interval_ms="100",
            poll_interval_ms="50",
            **JSON,
        )
        assert _payloads(node, f"{name}-first", 1) == [{"id": 1}]

        connection.execute("CREATE TABLE second (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO second VALUES (5)")
        connection.execute("INSERT INTO first VALUES (2)")

        assert _payloads(node, f"{name}-second", 1) == [{"id": 5}]
        assert _payloads(node, f"{name}-first", 2) == [{"id": 1}, {"id": 2}], "each row is there once"
    tasks = worker.ask("GET", f"/connectors/{name}/tasks")[1]
    assert [task["config"]["tables"] for task in tasks] == ["first,second"]
    assert worker.ask("DELETE", f"/connectors/{name}") == (204, None)


def test_reading_by_time_can_begin_later_than_the_first_row(
    worker: ConnectProcess, node: OttlaNode, database: _Database, name: str
) -> None:
    table = name.replace("-", "_")
    database.run(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, changed TIMESTAMP NOT NULL)")
    database.run(
        f"INSERT INTO {table} VALUES (1, '2026-01-01 00:00:00.000'), (2, '2026-01-01 00:00:01.000'), "
        "(3, '2026-01-01 00:00:02.000')"
    )
    worker.create(
        name,
        connector_class=SOURCE,
        connection_url=database.url,
        mode="timestamp",
        timestamp_column_name="changed",
        timestamp_initial="1767225601000",
        table_whitelist=table,
        topic_prefix=f"{name}-",
        **JSON,
    )

    assert [row["id"] for row in _payloads(node, f"{name}-{table}", 1)] == [3]
    assert worker.ask("DELETE", f"/connectors/{name}") == (204, None)
