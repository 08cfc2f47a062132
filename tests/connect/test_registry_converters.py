"""Converters with a registry: a client that nobody here wrote reads what a connector has written."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tests.connect.reading import read_topic
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess


@pytest.fixture
def registry(node: OttlaNode) -> Iterator[RegistryProcess]:
    with RegistryProcess(node.bootstrap) as running:
        yield running


def _item_class() -> Any:
    """Return the class of an item, written down without any code of ours."""
    kinds = descriptor_pb2.FieldDescriptorProto
    decimal = descriptor_pb2.FileDescriptorProto(name="decimal.proto", package="t", syntax="proto3")
    message = decimal.message_type.add(name="Decimal")
    for number, (field, kind) in enumerate(
        [("value", kinds.TYPE_BYTES), ("precision", kinds.TYPE_UINT32), ("scale", kinds.TYPE_INT32)], 1
    ):
        message.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    item = decimal.message_type.add(name="items")
    for number, (field, kind) in enumerate([("id", kinds.TYPE_INT64), ("label", kinds.TYPE_STRING)], 1):
        item.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    price = item.field.add(name="price", number=3, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_OPTIONAL)
    price.type_name = ".t.Decimal"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(decimal)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.items"))


def _confluents_reader(converter: str, client: SchemaRegistryClient) -> Any:
    if converter.startswith("avro"):
        return AvroDeserializer(client)
    if converter.startswith("json"):
        return JSONDeserializer(None, schema_registry_client=client)
    read = ProtobufDeserializer(_item_class(), {"use.deprecated.format": False})

    def row(data: bytes, context: SerializationContext) -> dict[str, Any]:
        item = read(data, context)
        price = None
        if item.HasField("price"):
            unscaled = int.from_bytes(item.price.value, "big", signed=True)
            price = Decimal(unscaled).scaleb(-item.price.scale)
        return {"id": item.id, "label": item.label or None, "price": price}

    return row


@pytest.mark.parametrize(
    ("converter", "price"),
    [
        ("avro.AvroConverter", "2.50"),
        ("json.JsonSchemaConverter", "APo="),
        ("protobuf.ProtobufConverter", "2.50"),
    ],
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
    if converter.startswith("protobuf"):
        converters["value_converter_optional_for_nullables"] = "true"
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
        read = _confluents_reader(converter, client)
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
