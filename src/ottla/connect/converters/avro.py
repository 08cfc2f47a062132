"""Avro with a schema registry, by the name of Confluent's converter.

Schemas of Connect become schemas of Avro as Confluent's converter makes them: a missing value is a union with
null, and logical types are those of Avro. Maps whose keys are not text are not supported.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from ottla.client.errors import ClientError
from ottla.client.registry import AvroDeserializer, AvroSerializer
from ottla.connect.converters.per_schema import PerSchema
from ottla.connect.converters.registry_client import conversion_error, registry_client
from ottla.connect.data.schema import (
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    SCALE,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    Field,
    Schema,
    Type,
    decimal_schema,
    infer,
    optional,
)
from ottla.connect.errors import DataError
from ottla.schemas.errors import MisfitValue, UnreadableValue
from ottla.schemas.wire_format import decode_prefix

_NAMESPACE: Final = "io.confluent.connect.avro"
_DEFAULT_NAME: Final = "ConnectDefault"
_DIGITS: Final = 64
_INVALID: Final = re.compile(r"[^A-Za-z0-9_.]")
_PRIMITIVES: Final = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL: Final = {
    DATE: ("int", "date"),
    TIME: ("int", "time-millis"),
    TIMESTAMP: ("long", "timestamp-millis"),
}
_FROM_PRIMITIVE: Final = {
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
    "enum": Type.STRING,
}
_FROM_LOGICAL: Final = {
    "date": DATE_SCHEMA,
    "time-millis": TIME_SCHEMA,
    "time-micros": TIME_SCHEMA,
    "timestamp-millis": TIMESTAMP_SCHEMA,
    "timestamp-micros": TIMESTAMP_SCHEMA,
}


class AvroConverter:
    """Avro values with the id of their schema before them."""

    waits = True

    def __init__(self, config: Mapping[str, str]) -> None:
        self._registry = registry_client(config, "AvroConverter")
        self._is_key = config.get("is.key") == "true"
        self._registers = config.get("auto.register.schemas", "true").lower() == "true"
        self._serializer_of = PerSchema(self._serializer)
        self._by_text: dict[str, AvroSerializer] = {}
        self._deserializer = AvroDeserializer(self._registry, is_key=self._is_key)
        self._schemas: dict[int, Schema] = {}

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a value as Avro."""
        if value is None:
            return None
        known = infer(value) if schema is None else schema
        try:
            return self._serializer_of(known)(topic, value)
        except (ClientError, MisfitValue) as error:
            raise conversion_error(error, "Failed to serialize Avro data") from error

    def _serializer(self, schema: Schema) -> AvroSerializer:
        text = json.dumps(to_avro(schema, set()))
        if text not in self._by_text:
            self._by_text[text] = AvroSerializer(
                self._registry, text, is_key=self._is_key, auto_register=self._registers
            )
        return self._by_text[text]

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return Avro as a value, with the schema that it was written with."""
        if data is None:
            return None, None
        try:
            value = self._deserializer(topic, data)
            schema_id = decode_prefix(data)
            if schema_id not in self._schemas:
                text = self._registry.by_id(schema_id).text
                self._schemas[schema_id] = from_avro(json.loads(text), {})
        except (ClientError, UnreadableValue, ValueError) as error:
            raise conversion_error(error, "Failed to deserialize Avro data") from error
        return self._schemas[schema_id], value


def to_avro(schema: Schema, named: set[str]) -> Any:
    """Return a schema as Avro's JSON. A record that was named before is its name."""
    plain = _plain_avro(schema, named)
    return ["null", plain] if schema.is_optional else plain


def _plain_avro(schema: Schema, named: set[str]) -> Any:
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get(SCALE, "0"))
        return {"type": "bytes", "logicalType": "decimal", "precision": _DIGITS, "scale": scale}
    if schema.name in _LOGICAL:
        kind, logical = _LOGICAL[schema.name]
        return {"type": kind, "logicalType": logical}
    match schema.type:
        case Type.STRUCT:
            return _record(schema, named)
        case Type.ARRAY if schema.values is not None:
            return {"type": "array", "items": to_avro(schema.values, named)}
        case Type.MAP if schema.values is not None:
            if schema.keys is None or schema.keys.type is not Type.STRING:
                raise DataError("AvroConverter supports only maps whose keys are text")
            return {"type": "map", "values": to_avro(schema.values, named)}
    return _PRIMITIVES[schema.type]


def _record(schema: Schema, named: set[str]) -> Any:
    name = (
        _INVALID.sub("_", schema.name) if schema.name else f"{_NAMESPACE}.{_DEFAULT_NAME}{len(named) or ''}"
    )
    if name in named:
        return name
    named.add(name)
    fields: list[dict[str, Any]] = []
    for item in schema.fields:
        declared: dict[str, Any] = {"name": _INVALID.sub("_", item.name), "type": to_avro(item.schema, named)}
        if item.schema.is_optional:
            declared["default"] = None
        fields.append(declared)
    namespace, _, short = name.rpartition(".")
    record: dict[str, Any] = {"type": "record", "name": short, "fields": fields}
    return {**record, "namespace": namespace} if namespace else record


def from_avro(content: Any, named: dict[str, Schema]) -> Schema:
    """Return the schema of Connect for a schema of Avro. Raises DataError."""
    if isinstance(content, list):
        kinds = [item for item in content if item != "null"]
        if len(kinds) != 1:
            raise DataError("unions of several types are not supported")
        return optional(from_avro(kinds[0], named))
    if isinstance(content, str):
        if content in named:
            return named[content]
        return Schema(_primitive(content))
    logical = content.get("logicalType")
    if logical == "decimal":
        return decimal_schema(int(content.get("scale", 0)))
    if logical in _FROM_LOGICAL:
        return _FROM_LOGICAL[logical]
    match content["type"]:
        case "record":
            return _struct(content, named)
        case "array":
            return Schema(Type.ARRAY, values=from_avro(content["items"], named))
        case "map":
            return Schema(Type.MAP, keys=Schema(Type.STRING), values=from_avro(content["values"], named))
        case dict() | list() as inner:
            return from_avro(inner, named)
    return Schema(_primitive(content["type"]))


def _struct(content: Mapping[str, Any], named: dict[str, Schema]) -> Schema:
    namespace = content.get("namespace")
    name = f"{namespace}.{content['name']}" if namespace and "." not in content["name"] else content["name"]
    fields = tuple(Field(item["name"], from_avro(item["type"], named)) for item in content["fields"])
    schema = Schema(Type.STRUCT, name=name, fields=fields)
    named[name] = named[content["name"]] = schema
    return schema


def _primitive(name: str) -> Type:
    if name not in _FROM_PRIMITIVE:
        raise DataError(f"the Avro type {name!r} is not supported")
    return _FROM_PRIMITIVE[name]
