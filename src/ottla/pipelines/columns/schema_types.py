"""Schemas of a registry as types of Arrow, so that values become columns.

A union of null and one other type is that type. What Arrow has no type for (other unions, values of any type)
is a string with JSON in it.
"""

from typing import Any, Final

import pyarrow as pa

from ottla.schemas.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.parsed import ParsedSchema

_SIMPLE: Final = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_JSON: Final = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
ANYTHING: Final = pa.string()
_DEPTH_MAX: Final = 20
_DECIMAL_DIGITS_MAX: Final = 38


def arrow_type(schema: ParsedSchema) -> Any:
    """Return the type of the values of a schema, a struct. Raises InvalidSchema if they are no records."""
    if isinstance(schema, AvroSchema):
        found = _avro(schema.root, 0)
    elif isinstance(schema, JsonSchema):
        found = _json(schema.value, schema.value, 0)
    else:
        raise InvalidSchema(f"{schema.schema_type} schemas are read through their messages")
    if not pa.types.is_struct(found):
        raise InvalidSchema("its values are no records, so they have no columns")
    return found


def _avro(kind: AvroType, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        raise InvalidSchema("it contains itself, and columns cannot")
    if isinstance(kind, RecordType):
        return pa.struct([pa.field(item.name, _avro(item.type, depth + 1)) for item in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(_avro(kind.items, depth + 1))
    if isinstance(kind, MapType):
        return pa.map_(pa.string(), _avro(kind.values, depth + 1))
    if isinstance(kind, UnionType):
        others = [branch for branch in kind.branches if branch.kind != "null"]
        return _avro(others[0], depth + 1) if len(others) == 1 else ANYTHING
    logical = kind.props.get("logicalType")
    if logical == "decimal" and kind.kind in ("bytes", "fixed"):
        return _decimal(kind.props)
    if isinstance(kind, EnumType):
        return pa.string()
    if isinstance(kind, FixedType):
        return pa.binary()
    return _LOGICAL.get((kind.kind, str(logical)), _SIMPLE[kind.kind])


def _decimal(props: dict[str, Any]) -> Any:
    precision = props.get("precision")
    if not isinstance(precision, int) or not 0 < precision <= _DECIMAL_DIGITS_MAX:
        return ANYTHING
    return pa.decimal128(precision, int(props.get("scale", 0)))


def _json(schema: Any, root: Any, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        raise InvalidSchema("it contains itself, and columns cannot")
    if not isinstance(schema, dict):
        return ANYTHING
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return _json(_within(root, ref), root, depth + 1)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        kinds = others[0] if len(others) == 1 else None
    if kinds == "object" and isinstance(schema.get("properties"), dict) and schema["properties"]:
        fields = schema["properties"].items()
        return pa.struct([pa.field(name, _json(item, root, depth + 1)) for name, item in fields])
    if kinds == "array" and isinstance(schema.get("items"), dict):
        return pa.list_(_json(schema["items"], root, depth + 1))
    return _JSON.get(str(kinds), ANYTHING)


def _within(root: Any, ref: str) -> Any:
    found = root
    for part in ref.removeprefix("#/").split("/") if ref.startswith("#/") else ():
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found if found is not root else {}


def message_type(descriptor: Any, depth: int = 0) -> Any:
    """Return the type of a Protobuf message, as its JSON form has it."""
    if depth > _DEPTH_MAX:
        raise InvalidSchema("it contains itself, and columns cannot")
    return pa.struct([pa.field(field.name, _field_type(field, depth)) for field in descriptor.fields])


def _field_type(field: Any, depth: int) -> Any:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return pa.map_(pa.string(), _single(entry.fields_by_name["value"], depth + 1))
    return pa.list_(_single(field, depth)) if field.is_repeated else _single(field, depth)


_CPP: Final = {
    1: pa.int32(),
    2: pa.int64(),
    3: pa.int64(),
    # Spark has no unsigned types.
    4: pa.int64(),
    5: pa.float64(),
    6: pa.float32(),
    7: pa.bool_(),
    8: pa.string(),
    9: pa.string(),
}
_BYTES: Final = 12


def _single(field: Any, depth: int) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return pa.timestamp("us", "UTC")
        return message_type(field.message_type, depth + 1)
    return pa.binary() if field.type == _BYTES else _CPP[field.cpp_type]
