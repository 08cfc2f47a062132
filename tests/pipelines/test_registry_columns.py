"""Topics get their columns from the registry, and old and new records end in one schema."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.records import committed, committed_json, create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

from ottla.client.registry import (
    AvroDeserializer,
    AvroSerializer,
    JsonSerializer,
    ProtobufSerializer,
    RegistryClient,
)
from ottla.client.sync import Producer
from ottla.pipelines.columns.values import decode_values, find_source
from ottla.pipelines.definition import AVAILABLE_NOW, InvalidPipeline, pipeline, topic
from ottla.pipelines.spark.runner import RunSettings, run_pipelines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _order(*more: dict[str, Any]) -> str:
    fields = [{"name": "id", "type": "long"}, {"name": "tags", "type": {"type": "map", "values": "string"}}]
    return json.dumps({"type": "record", "name": "Order", "fields": [*fields, *more]})


OLD, NEW = _order(), _order({"name": "note", "type": ["null", "string"], "default": None})


def test_a_pipeline_reads_columns_of_the_registry(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    create_topic(node.bootstrap, "reg_orders", 1)
    create_topic(node.bootstrap, "reg_out", 1)
    with RegistryProcess(node.bootstrap) as registry, RegistryClient(registry.url) as client:
        old, new = AvroSerializer(client, OLD), AvroSerializer(client, NEW)
        with Producer(node.bootstrap) as producer:
            producer.send("reg_orders", old("reg_orders", {"id": 1, "tags": {"a": "x"}}))
            producer.send("reg_orders", new("reg_orders", {"id": 2, "tags": {}, "note": "n"}))
            producer.send("reg_orders", b"no schema at all")

        @pipeline("reg_copy", to="reg_out", trigger=AVAILABLE_NOW)
        def copy(orders: Any = topic("reg_orders")) -> Any:
            return orders.select("id", "tags", "note")

        settings = RunSettings(
            {"bootstrap.servers": node.bootstrap}, tmp_path, trigger=AVAILABLE_NOW, registry=registry.url
        )
        run_pipelines([copy], settings, session=spark)
        rows = sorted(committed_json(node.bootstrap, "reg_out"), key=lambda row: row["id"])
        assert rows == [{"id": 1, "tags": {"a": "x"}, "note": None}, {"id": 2, "tags": {}, "note": "n"}]
        assert len(committed(node.bootstrap, "reg_copy.dead_letters")) == 1
        _check_values_with_a_schema(spark, node, client, settings)
        _check_other_formats(client, registry.url)


def _check_values_with_a_schema(
    spark: "SparkSession", node: OttlaNode, client: RegistryClient, settings: RunSettings
) -> None:
    """What a pipeline writes has a schema, which is checked before anything is written."""
    create_topic(node.bootstrap, "reg_typed", 1)

    @pipeline("reg_typed_copy", to="reg_typed", key="id", values="avro", trigger=AVAILABLE_NOW)
    def typed(orders: Any = topic("reg_orders")) -> Any:
        return orders.selectExpr(
            "id", "tags", "note",
            "array(struct(id AS n, 1.5D AS x)) AS items",
            "cast(2.5 AS decimal(6,2)) AS d",
            "to_timestamp('2026-01-01T00:00:00Z') AS at",
        )  # fmt: skip

    run_pipelines([typed], settings, session=spark)
    registered = client.latest("reg_typed-value")
    assert (registered.schema_type, registered.version) == ("AVRO", 1)
    read = AvroDeserializer(client)
    rows = sorted(
        (read("reg_typed", record.value()) for record in committed(node.bootstrap, "reg_typed")),
        key=lambda row: int(row["id"]),
    )
    assert [(row["id"], row["tags"], row["note"]) for row in rows] == [(1, {"a": "x"}, None), (2, {}, "n")]
    assert rows[0]["items"] == [{"n": 1, "x": 1.5}]
    assert (str(rows[0]["d"]), rows[0]["at"].isoformat()) == ("2.50", "2026-01-01T00:00:00+00:00")

    @pipeline("reg_typed_copy", to="reg_typed", values="avro", trigger=AVAILABLE_NOW)
    def changed(orders: Any = topic("reg_orders")) -> Any:
        return orders.selectExpr("cast(id AS string) AS id")

    with pytest.raises(InvalidPipeline, match="incompatible"):
        run_pipelines([changed], settings, session=spark)


def _check_other_formats(client: RegistryClient, url: str) -> None:
    import pyarrow as pa

    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["null", "string"]}}}
    write = JsonSerializer(client, json.dumps(schema))
    proto = 'syntax = "proto3"; message P { int64 n = 1; repeated string s = 2; map<string, int32> m = 3; }'
    write_proto = ProtobufSerializer(client, proto)
    cases = (
        (write("reg_json", {"a": 1}), "reg_json-value", {"a": 1, "b": None}),
        (
            write_proto("reg_proto", {"n": 5, "s": ["x"], "m": {"k": 1}}),
            "reg_proto-value",
            {"n": 5, "s": ["x"], "m": [("k", 1)]},
        ),
    )
    for data, subject, expected in cases:
        source = find_source(url, subject)
        assert source is not None
        found = decode_values(source, pa.array([data, None, b"?"], pa.binary())).to_pylist()
        assert [row["value"] for row in found] == [expected, None, None]
        assert [row["fault"] is not None for row in found] == [False, False, True]
