"""Converters with a registry: a client that nobody here wrote reads what a connector has written."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.connect.reading import read_topic
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess


@pytest.fixture
def registry(node: OttlaNode) -> Iterator[RegistryProcess]:
    with RegistryProcess(node.bootstrap) as running:
        yield running


@pytest.mark.parametrize(
    ("converter", "price"), [("avro.AvroConverter", "2.50"), ("json.JsonSchemaConverter", "APo=")]
)
def test_rows_have_schemas_that_confluents_client_reads_and_a_sink_writes_back(
    worker: ConnectProcess,
    node: OttlaNode,
    registry: RegistryProcess,
    tmp_path: Path,
    name: str,
    converter: str,
    price: str,
) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, label TEXT, price DECIMAL(8, 2))")
        connection.execute("INSERT INTO items VALUES (1, 'tea', 2.5), (2, NULL, NULL)")
    converters = {
        "value_converter": f"io.confluent.connect.{converter}",
        "value_converter_schema_registry_url": registry.url,
    }
    worker.create(
        f"{name}-in",
        connector_class="JdbcSource",
        connection_url=f"jdbc:sqlite:{path}",
        mode="incrementing",
        table_whitelist="items",
        topic_prefix=f"{name}-",
        **converters,
    )
    worker.create(
        f"{name}-out",
        connector_class="JdbcSink",
        connection_url=f"jdbc:sqlite:{path}",
        topics=f"{name}-items",
        table_name_format="copies",
        auto_create="true",
        **converters,
    )
    records = read_topic(node.bootstrap, f"{name}-items", 2)

    with SchemaRegistryClient({"url": registry.url}) as client:
        if converter.startswith("avro"):
            read = AvroDeserializer(client)
        else:
            read = JSONDeserializer(None, schema_registry_client=client)
        context = SerializationContext(f"{name}-items", MessageField.VALUE)
        rows = [read(record.value, context) for record in records]
    assert [(row["id"], row["label"], row["price"] and str(row["price"])) for row in rows] == [
        (1, "tea", price),
        (2, None, None),
    ]

    def copies() -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE name = 'copies'").fetchall()
            return connection.execute("SELECT * FROM copies ORDER BY id").fetchall() if found else []

    worker.wait_for("/", lambda _: copies() == [(1, "tea", "2.50"), (2, None, None)])
    assert worker.ask("DELETE", f"/connectors/{name}-in") == (204, None)
    assert worker.ask("DELETE", f"/connectors/{name}-out") == (204, None)
