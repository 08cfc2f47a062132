"""Change capture from PostgreSQL: all rows, then each change once, whatever dies."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.connect import changes
from tests.connect.reading import read_topic
from tests.connect.test_tables import postgres
from tests.registry.conftest import QUICK
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode
from tests.support.postgres_server import PostgresServer

from ottla.client.admin.admin import Admin
from ottla.connect.running.source import longest_transaction_ms

__all__ = ["postgres"]
JSON = "org.apache.kafka.connect.json.JsonConverter"


def test_rows_then_changes_with_images_before_and_after(
    worker: ConnectProcess, node: OttlaNode, postgres: PostgresServer, name: str
) -> None:
    table = name.replace("-", "_")
    with postgres.connect() as connection:
        connection.execute(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, price NUMERIC(8, 2), at TIMESTAMPTZ, raw BYTEA, "
            "big TEXT)"
        )
        connection.execute(f"INSERT INTO {table} VALUES (1, 1.50, '2026-01-01 00:00:00Z', '\\x00ff', 'a')")
    worker.create(
        name,
        connector_class="PostgresChanges",
        database_hostname="127.0.0.1",
        database_port=str(postgres.port),
        database_user="postgres",
        database_dbname="postgres",
        topic_prefix=name,
        table_include_list=f"public.{table}",
        slot_name=table,
        publication_name=table,
        poll_interval_ms="50",
        key_converter=JSON,
        value_converter=JSON,
        value_converter_schemas_enable="false",
        key_converter_schemas_enable="false",
    )
    topic = f"{name}.public.{table}"
    read_topic(node.bootstrap, topic, 1)
    with postgres.connect() as connection:
        connection.execute(f"UPDATE {table} SET price = 2.25 WHERE id = 1")
        connection.execute(f"UPDATE {table} SET id = 2 WHERE id = 1")
        connection.execute(f"DELETE FROM {table}")

    records = read_topic(node.bootstrap, topic, 7)

    values: list[Any] = [None if record.value is None else json.loads(record.value) for record in records]
    assert [value and value["op"] for value in values] == ["r", "u", "d", None, "c", "d", None]
    first, raised, ended, _, moved, deleted, _ = values
    # Decimals are bytes in base 64 without a schema: 150 and 225 hundredths.
    assert first["before"] is None
    at = "2026-01-01T00:00:00.000000Z"
    assert first["after"] == {"id": 1, "price": "AJY=", "at": at, "raw": "AP8=", "big": "a"}
    assert (raised["before"], raised["after"]["price"]) == (None, "AOE=")
    # Another key for a row is the end of one and the beginning of another.
    assert (ended["before"]["id"], moved["before"], moved["after"]["id"]) == (1, None, 2)
    assert (deleted["before"]["id"], deleted["after"]) == (2, None)
    assert [json.loads(record.key) for record in records[2:]] == [{"id": 1}] * 2 + [{"id": 2}] * 3
    assert records[2].headers == records[3].headers == (("__debezium.newkey", b'{"id":2}'),)
    assert records[4].headers == (("__debezium.oldkey", b'{"id":1}'),)
    assert worker.ask("DELETE", f"/connectors/{name}") == (204, None)


def test_the_first_rows_may_take_as_long_as_the_brokers_allow(tmp_path: Path) -> None:
    async def longest(bootstrap: str) -> int:
        async with Admin(bootstrap) as admin:
            return await longest_transaction_ms(admin)

    with OttlaNode(tmp_path, {**QUICK, "transaction.max.timeout.ms": "7200000"}) as running:
        assert asyncio.run(longest(running.bootstrap)) == 7_200_000


def test_kills_lose_no_change_and_double_none(tmp_path: Path) -> None:
    changes.run(tmp_path, kills=3, tell=lambda _line: None)
