"""Kafka's JSON: a value with its schema in an envelope, or a plain value."""

import base64
import json
import math
import re
import secrets
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Self

from ottla.connect.data.schema import (
    DECIMAL,
    Field,
    Schema,
    Type,
    from_primitive,
    infer,
    to_primitive,
)
from ottla.connect.errors import DataError

_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)
_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
# The library writes decimals as floats, which have 17 digits. So they are texts with a mark that no value can
# have, and the quotes are removed afterwards.
_MARK: Final = f"decimal-{secrets.token_hex(16)}:"
_MARKED: Final = re.compile(f'"{_MARK}([^"]*)"')


class _Written(float):
    """A number that remembers how it was written: it may be a decimal with more digits."""

    text: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.text = text
        return made


class JsonConverter:
    """JSON with or without schemas."""

    def __init__(self, config: Mapping[str, str], *, marks_decimals: bool = True) -> None:
        """Make a converter. One that does not write bytes itself has no use for marks."""
        self._marks_decimals = marks_decimals
        self._has_schemas = config.get("schemas.enable", "true").lower() == "true"
        self._is_numeric = config.get("decimal.format", "BASE64").upper() == "NUMERIC"
        self._fills_defaults = config.get("replace.null.with.default", "true").lower() == "true"

    def to_bytes(self, _topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return a value as JSON."""
        if value is None and (schema is None or not self._has_schemas):
            return None
        payload = self.to_json(schema, value)
        if self._has_schemas:
            payload = {"schema": None if schema is None else schema_to_json(schema), "payload": payload}
        try:
            text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DataError(f"the value is not JSON: {error}") from error
        return (_MARKED.sub(r"\1", text) if self._is_numeric else text).encode()

    def from_bytes(self, _topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Return JSON as a value. Decimals keep all their digits."""
        if data is None:
            return None, None
        try:
            content = json.loads(data, parse_float=_Written if self._has_schemas else None)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
            ) from error
        if not self._has_schemas:
            return None, content
        if not isinstance(content, dict) or set(content) != {"schema", "payload"}:
            raise DataError(_ENVELOPE)
        if content["schema"] is None:
            return None, json.loads(data)["payload"]
        schema = schema_from_json(content["schema"])
        return schema, self.from_json(schema, content["payload"])

    def to_json(self, schema: Schema | None, value: Any) -> Any:
        """Return a value as what JSON has. Raises DataError."""
        if schema is None:
            return self._plain(value)
        if value is None:
            if schema.default is not None and self._fills_defaults:
                return self.to_json(schema, schema.default)
            if not schema.is_optional:
                raise DataError(
                    "Conversion error: null value for field that is required and has no default value"
                )
            return None
        if schema.name == DECIMAL and self._is_numeric and isinstance(value, Decimal):
            return self._number(value)
        value = to_primitive(schema, value)
        match schema.type:
            case Type.STRUCT:
                return {item.name: self.to_json(item.schema, value.get(item.name)) for item in schema.fields}
            case Type.ARRAY:
                return [self.to_json(schema.values, item) for item in value]
            case Type.MAP if schema.keys is not None and schema.keys.type is Type.STRING:
                return {key: self.to_json(schema.values, item) for key, item in value.items()}
            case Type.MAP:
                return [
                    [self.to_json(schema.keys, key), self.to_json(schema.values, item)]
                    for key, item in value.items()
                ]
            case Type.BYTES:
                return base64.b64encode(bytes(value)).decode()
        return finite_or_text(value)

    def _number(self, value: Decimal) -> Any:
        if not value.is_finite():
            raise DataError(f"{value} is not a number of JSON: use decimal.format=BASE64")
        if self._marks_decimals:
            return f"{_MARK}{value}"
        return float(value) if value % 1 else int(value)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        if value is None or isinstance(value, bool | int | float | str):
            return finite_or_text(value)
        return self.to_json(infer(value), value)

    def from_json(self, schema: Schema | None, value: Any) -> Any:
        """Return what JSON has as a value of a schema. Raises DataError."""
        if schema is None:
            return value
        if value is None:
            if schema.default is not None and self._fills_defaults:
                return schema.default
            if not schema.is_optional:
                raise DataError(f"Invalid null value for required {schema.type.name} field")
            return None
        try:
            return from_primitive(schema, self._typed(schema, value))
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"Invalid value {value!r} for a field of type {schema.type.name}: {error}"
            ) from error

    def _typed(self, schema: Schema, value: Any) -> Any:
        if schema.name == DECIMAL and not isinstance(value, str):
            return Decimal(value.text if isinstance(value, _Written) else str(value))
        match schema.type:
            case Type.STRUCT:
                return {
                    item.name: self.from_json(item.schema, value.get(item.name)) for item in schema.fields
                }
            case Type.ARRAY:
                return [self.from_json(schema.values, item) for item in value]
            case Type.MAP:
                pairs = value.items() if isinstance(value, dict) else value
                return {
                    self.from_json(schema.keys, key): self.from_json(schema.values, item)
                    for key, item in pairs
                }
            case Type.BYTES:
                return base64.b64decode(value, validate=True)
            case kind if kind in _FLOATS:
                return float(value)
            case kind if kind in _INTEGERS and (not isinstance(value, int) or isinstance(value, bool)):
                raise ValueError("not a whole number")
            case Type.STRING if not isinstance(value, str):
                raise ValueError("not text")
            case Type.BOOLEAN if not isinstance(value, bool):
                raise ValueError("neither true nor false")
        return value


def finite_or_text(value: Any) -> Any:
    """Return a value as JSON has it: NaN and the infinities are no numbers there, so Java writes texts."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return a schema as envelopes have it."""
    content: dict[str, Any] = {"type": schema.type.value}
    if schema.type is Type.STRUCT:
        content["fields"] = [{**schema_to_json(item.schema), "field": item.name} for item in schema.fields]
    if schema.type is Type.MAP and schema.keys is not None:
        content["keys"] = schema_to_json(schema.keys)
    if schema.values is not None:
        content["items" if schema.type is Type.ARRAY else "values"] = schema_to_json(schema.values)
    content["optional"] = schema.is_optional
    if schema.name is not None:
        content["name"] = schema.name
    if schema.version is not None:
        content["version"] = schema.version
    if schema.doc is not None:
        content["doc"] = schema.doc
    if schema.parameters:
        content["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        default = to_primitive(schema, schema.default)
        is_bytes = isinstance(default, bytes)
        content["default"] = base64.b64encode(default).decode() if is_bytes else finite_or_text(default)
    return content


def schema_from_json(content: Any) -> Schema:
    """Read the schema of an envelope. Raises DataError."""
    try:
        kind = Type(content["type"])
        fields = tuple(
            Field(str(item["field"]), schema_from_json(item)) for item in content.get("fields", ())
        )
        below = content.get("items") if kind is Type.ARRAY else content.get("values")
        schema = Schema(
            kind,
            bool(content.get("optional", False)),
            content.get("name"),
            content.get("version"),
            content.get("doc"),
            {str(key): str(value) for key, value in (content.get("parameters") or {}).items()},
            None,
            fields,
            schema_from_json(content["keys"]) if content.get("keys") is not None else None,
            schema_from_json(below) if below is not None else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"Unknown schema type or a schema that cannot be read: {error!r}") from error
    if content.get("default") is None:
        return schema
    default = JsonConverter({"schemas.enable": "false"}).from_json(schema, content["default"])
    return Schema(
        schema.type,
        schema.is_optional,
        schema.name,
        schema.version,
        schema.doc,
        schema.parameters,
        default,
        schema.fields,
        schema.keys,
        schema.values,
    )
