"""Schemas of a registry become types of Arrow, by one table for each kind of schema."""

import json
from typing import Any

import pyarrow as pa
import pytest

from ottla.pipelines.columns.schema_types import ANYTHING, arrow_type
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsing import parse_schema

TIME, LOCAL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")


def avro(kind: Any) -> Any:
    """Return the type of a field of this Avro type."""
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}
    return arrow_type(parse_schema("AVRO", json.dumps(record), (), {})).field("a").type


def of_json(schema: Any, **more: Any) -> Any:
    """Return the type of a property with this schema."""
    record = {"type": "object", "properties": {"a": schema}, **more}
    return arrow_type(parse_schema("JSON", json.dumps(record), (), {})).field("a").type


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("null", pa.string()),
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        (logical("int", "date"), pa.date32()),
        (logical("long", "timestamp-millis"), TIME),
        (logical("long", "timestamp-micros"), TIME),
        (logical("long", "local-timestamp-millis"), LOCAL_TIME),
        (logical("long", "local-timestamp-micros"), LOCAL_TIME),
        (logical("int", "timestamp-millis"), pa.int32()),
        (logical("int", "time-millis"), pa.int32()),
        (logical("string", "uuid"), pa.string()),
        (logical("bytes", "decimal", precision=4, scale=2), pa.decimal128(4, 2)),
        (logical("bytes", "decimal", precision=38), pa.decimal128(38, 0)),
        (logical("bytes", "decimal", precision=39), ANYTHING),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary()),
        (
            {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 1},
            pa.decimal128(1, 0),
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        ({"type": "array", "items": "long"}, pa.list_(pa.int64())),
        ({"type": "map", "values": ["null", "int"]}, pa.map_(pa.string(), pa.int32())),
        (["null", "int"], pa.int32()),
        (["long", "null"], pa.int64()),
        (["int", "string"], ANYTHING),
        (["null", "int", "string"], ANYTHING),
        (["null"], ANYTHING),
        (
            {"type": "record", "name": "S", "fields": [{"name": "b", "type": "int"}]},
            pa.struct([pa.field("b", pa.int32())]),
        ),
    ],
)
def test_a_type_of_avro_is_one_of_arrow(kind: Any, expected: Any) -> None:
    assert avro(kind) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, pa.string()),
        ({"type": "integer"}, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "null"}, ANYTHING),
        ({}, ANYTHING),
        (True, ANYTHING),
        ({"type": ["integer", "null"]}, pa.int64()),
        ({"type": ["null", "boolean"]}, pa.bool_()),
        ({"type": ["integer", "string"]}, ANYTHING),
        ({"type": "object"}, ANYTHING),
        ({"type": "object", "properties": {}}, ANYTHING),
        ({"type": "string", "properties": {"b": {"type": "integer"}}}, pa.string()),
        (
            {"type": "object", "properties": {"b": {"type": "integer"}}},
            pa.struct([pa.field("b", pa.int64())]),
        ),
        ({"type": "array"}, ANYTHING),
        ({"type": "array", "items": {"type": "number"}}, pa.list_(pa.float64())),
        ({"type": "string", "items": {"type": "number"}}, pa.string()),
        ({"$ref": "#/$defs/id"}, pa.int64()),
        ({"$ref": "#/$defs/deep/inner"}, pa.bool_()),
        ({"$ref": "#/$defs/id/nothing"}, ANYTHING),
    ],
)
def test_a_type_of_json_is_one_of_arrow(schema: Any, expected: Any) -> None:
    definitions = {"id": {"type": "integer"}, "deep": {"inner": {"type": "boolean"}}}
    assert of_json(schema, **{"$defs": definitions}) == expected


def nested(depth: int) -> Any:
    kind: Any = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return kind


def test_what_is_nested_too_deep_or_contains_itself_has_no_columns() -> None:
    # The record is one level, and the innermost item another.
    expected = pa.int32()
    for _ in range(19):
        expected = pa.list_(expected)
    assert avro(nested(19)) == expected
    with pytest.raises(InvalidSchema, match="it contains itself, and columns cannot"):
        avro(nested(20))
    with pytest.raises(InvalidSchema, match="it contains itself, and columns cannot"):
        avro(["null", "R"])
    with pytest.raises(InvalidSchema, match="it contains itself, and columns cannot"):
        of_json(
            {"$ref": "#/$defs/tree"},
            **{"$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
        )


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("AVRO", '"int"', "its values are no records, so they have no columns"),
        ("JSON", '{"type": "integer"}', "its values are no records"),
        (
            "PROTOBUF",
            'syntax = "proto3"; message M { int32 a = 1; }',
            "PROTOBUF schemas are read through their",
        ),
    ],
)
def test_values_that_are_no_records_have_no_columns(kind: str, text: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        arrow_type(parse_schema(kind, text, (), {}))
