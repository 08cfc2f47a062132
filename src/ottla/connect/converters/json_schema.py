"""JSON with a schema registry, by the name of Confluent's converter.

A schema of Connect becomes a JSON Schema. What JSON cannot tell apart is in `connect.type`, and the name of a
schema is its title. A value that may be missing is `oneOf` null and its type.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from ottla.client.errors import ClientError
from ottla.client.registry import JsonDeserializer, JsonSerializer, RegistryClient
from ottla.connect.converters.json import JsonConverter
from ottla.connect.converters.per_schema import PerSchema
from ottla.connect.converters.registry_client import conversion_error, registry_client
from ottla.connect.data.schema import SCALE, Field, Schema, Type, infer, optional
from ottla.connect.errors import DataError
from ottla.schemas.errors import MisfitValue, UnreadableValue
from ottla.schemas.wire_format import decode_prefix

_KINDS: Final = {
    Type.INT8: "integer",
    Type.INT16: "integer",
    Type.INT32: "integer",
    Type.INT64: "integer",
    Type.FLOAT32: "number",
    Type.FLOAT64: "number",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "string",
}
_NAMES: Final = {Type.FLOAT32: "float32", Type.FLOAT64: "float64"}
_BY_NAME: Final = {_NAMES.get(kind, kind.value): kind for kind in _KINDS}
_DEFAULTS: Final = {
    "integer": Type.INT64,
    "number": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
}


class JsonSchemaConverter:
    """JSON values with the id of their schema before them."""

    waits = True

    def __init__(self, config: Mapping[str, str]) -> None:
        self._registry: RegistryClient = registry_client(config, "JsonSchemaConverter")
        self._is_key = config.get("is.key") == "true"
        self._registers = config.get("auto.register.schemas", "true").lower() == "true"
        self._values = JsonConverter({"schemas.enable": "false", **config}, marks_decimals=False)
        self._serializer_of = PerSchema(self._serializer)
        self._by_text: dict[str, JsonSerializer] = {}
        self._deserializer = JsonDeserializer(self._registry, is_key=self._is_key)
        self._schemas: dict[int, Schema] = {}

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a value as JSON, with the id of its schema."""
        if value is None:
            return None
        known = infer(value) if schema is None else schema
        try:
            return self._serializer_of(known)(topic, self._values.to_json(known, value))
        except (ClientError, MisfitValue) as error:
            raise conversion_error(error, "Failed to serialize JSON") from error

    def _serializer(self, schema: Schema) -> JsonSerializer:
        text = json.dumps(to_json_schema(schema))
        if text not in self._by_text:
            self._by_text[text] = JsonSerializer(
                self._registry, text, is_key=self._is_key, auto_register=self._registers
            )
        return self._by_text[text]

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return JSON as a value, with the schema that it was written with."""
        if data is None:
            return None, None
        try:
            content = self._deserializer(topic, data)
            schema_id = decode_prefix(data)
            if schema_id not in self._schemas:
                self._schemas[schema_id] = from_json_schema(json.loads(self._registry.by_id(schema_id).text))
        except (ClientError, UnreadableValue, ValueError) as error:
            raise conversion_error(error, "Failed to deserialize JSON") from error
        schema = self._schemas[schema_id]
        return schema, self._values.from_json(schema, content)


def to_json_schema(schema: Schema) -> dict[str, Any]:
    """Return a schema as a JSON Schema."""
    plain = _plain(schema)
    return {"oneOf": [{"type": "null"}, plain]} if schema.is_optional else plain


def _plain(schema: Schema) -> dict[str, Any]:
    content: dict[str, Any]
    match schema.type:
        case Type.STRUCT:
            properties = {
                item.name: {**to_json_schema(item.schema), "connect.index": place}
                for place, item in enumerate(schema.fields)
            }
            content = {"type": "object", "properties": properties}
        case Type.ARRAY if schema.values is not None:
            content = {"type": "array", "items": to_json_schema(schema.values)}
        case Type.MAP if schema.values is not None:
            if schema.keys is None or schema.keys.type is not Type.STRING:
                raise DataError("JsonSchemaConverter supports only maps whose keys are text")
            values = to_json_schema(schema.values)
            content = {"type": "object", "connect.type": "map", "additionalProperties": values}
        case _:
            content = {"type": _KINDS[schema.type]}
            if _DEFAULTS[content["type"]] is not schema.type or schema.type is Type.INT64:
                content["connect.type"] = _NAMES.get(schema.type, schema.type.value)
    if schema.name is not None:
        content["title"] = schema.name
    if schema.version is not None:
        content["connect.version"] = schema.version
    if schema.parameters:
        content["connect.parameters"] = dict(schema.parameters)
    return content


def from_json_schema(content: Any) -> Schema:
    """Return the schema of Connect for a JSON Schema. Raises DataError."""
    if not isinstance(content, dict):
        raise DataError("a JSON Schema that is not an object is not supported")
    choices = content.get("oneOf") or content.get("anyOf")
    if choices is not None:
        kinds = [item for item in choices if item != {"type": "null"}]
        if len(kinds) != 1:
            raise DataError("choices between several types are not supported")
        return optional(from_json_schema(kinds[0]))
    kind = content.get("type")
    if isinstance(kind, list) and len(kind) == 2 and "null" in kind:
        other = next(item for item in kind if item != "null")
        return optional(from_json_schema({**content, "type": other}))
    parameters = {str(key): str(value) for key, value in (content.get("connect.parameters") or {}).items()}
    common: dict[str, Any] = {"name": content.get("title"), "version": content.get("connect.version")}
    match kind:
        case "object" if content.get("connect.type") == "map":
            values = from_json_schema(content.get("additionalProperties", {}))
            return Schema(Type.MAP, keys=Schema(Type.STRING), values=values, **common)
        case "object":
            return Schema(Type.STRUCT, fields=_fields(content), **common)
        case "array":
            return Schema(Type.ARRAY, values=from_json_schema(content.get("items", {})), **common)
        case str() if kind in _DEFAULTS:
            exact = _BY_NAME.get(content.get("connect.type", ""), _DEFAULTS[kind])
            return Schema(exact, parameters=parameters or _scale(content), **common)
    raise DataError(f"the JSON Schema type {kind!r} is not supported")


def _fields(content: Mapping[str, Any]) -> tuple[Field, ...]:
    required = set(content.get("required", ()))
    properties = content.get("properties") or {}
    ordered = sorted(properties.items(), key=lambda item: item[1].get("connect.index", 0))
    is_ours = any("connect.index" in item for item in properties.values())
    fields = []
    for name, declared in ordered:
        schema = from_json_schema(declared)
        fields.append(Field(name, schema if is_ours or name in required else optional(schema)))
    return tuple(fields)


def _scale(content: Mapping[str, Any]) -> dict[str, str]:
    return {SCALE: "0"} if str(content.get("title", "")).endswith(".Decimal") else {}
