"""Schemas of Connect's data model, and the Python types that their values have.

A struct is a dict, a map a dict or a list of pairs, an array a list. Values of the logical types are those of
Python: Decimal, date, time, and datetime in UTC. A value without a schema may be anything that JSON can say.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from enum import StrEnum
from typing import Any, Final

DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
SCALE: Final = "scale"
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)
# PostgreSQL has up to 147,455 digits. Python's own default would round to 28.
_ALL_DIGITS: Final = Context(prec=150_000)


class Type(StrEnum):
    """What a value is, by the names that JSON envelopes use."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class Schema:
    """The type of a value, and what else is known of it."""

    type: Type
    is_optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    default: Any = None
    fields: tuple["Field", ...] = ()
    keys: "Schema | None" = None
    values: "Schema | None" = None
    """Of an array: what its elements are."""

    def field_named(self, name: str) -> "Field | None":
        """Return a field of a struct."""
        return next((item for item in self.fields if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct."""

    name: str
    schema: Schema


INT32: Final = Schema(Type.INT32)
INT64: Final = Schema(Type.INT64)
FLOAT64: Final = Schema(Type.FLOAT64)
BOOLEAN: Final = Schema(Type.BOOLEAN)
STRING: Final = Schema(Type.STRING)
BYTES: Final = Schema(Type.BYTES)
OPTIONAL_STRING: Final = Schema(Type.STRING, is_optional=True)
DATE_SCHEMA: Final = Schema(Type.INT32, name=DATE, version=1)
TIME_SCHEMA: Final = Schema(Type.INT32, name=TIME, version=1)
TIMESTAMP_SCHEMA: Final = Schema(Type.INT64, name=TIMESTAMP, version=1)


def decimal_schema(scale: int) -> Schema:
    """Return the schema of decimals with so many digits after the point."""
    return Schema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: str(scale)})


def optional(schema: Schema) -> Schema:
    """Return a schema whose values may be missing."""
    return schema if schema.is_optional else replace(schema, is_optional=True)


def struct(fields: Mapping[str, Schema], *, name: str | None = None, is_optional: bool = False) -> Schema:
    """Return the schema of a struct."""
    declared = tuple(Field(key, schema) for key, schema in fields.items())
    return Schema(Type.STRUCT, is_optional=is_optional, name=name, fields=declared)


def infer(value: Any) -> Schema:
    """Return a schema that fits a value of Python. Only for values that came without one."""
    for kinds, schema in _INFERRED:
        if isinstance(value, kinds):
            return schema
    if isinstance(value, Decimal):
        return decimal_schema(decimal_scale(value))
    if isinstance(value, Mapping):
        return struct({str(key): optional(infer(item)) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return Schema(Type.ARRAY, values=optional(infer(value[0])) if value else OPTIONAL_STRING)
    return OPTIONAL_STRING


_INFERRED: Final = (
    (bool, BOOLEAN),
    (int, INT64),
    (float, FLOAT64),
    (str, STRING),
    (bytes | bytearray | memoryview, BYTES),
    (datetime.datetime, TIMESTAMP_SCHEMA),
    (datetime.date, DATE_SCHEMA),
    (datetime.time, TIME_SCHEMA),
)


def decimal_scale(value: Decimal) -> int:
    """Return how many digits a decimal has after its point."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return a decimal with all its digits."""
    return Decimal(unscaled).scaleb(-scale, _ALL_DIGITS)


def to_primitive(schema: Schema, value: Any) -> Any:
    """Return a value of a logical type as the number or the bytes that Connect stores."""
    match schema.name:
        case "org.apache.kafka.connect.data.Decimal" if isinstance(value, Decimal):
            scale = int(schema.parameters.get(SCALE, "0"))
            unscaled = int(value.scaleb(scale, _ALL_DIGITS).to_integral_value())
            length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
            return unscaled.to_bytes(length, "big", signed=True)
        case "org.apache.kafka.connect.data.Date" if isinstance(value, datetime.date):
            return (value - EPOCH.date()).days
        case "org.apache.kafka.connect.data.Time" if isinstance(value, datetime.time):
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return seconds * 1000 + value.microsecond // 1000
        case "org.apache.kafka.connect.data.Timestamp" if isinstance(value, datetime.datetime):
            return to_ms(value)
    return value


def from_primitive(schema: Schema, value: Any) -> Any:
    """Return a number or bytes as the logical type that the schema names."""
    match schema.name:
        case "org.apache.kafka.connect.data.Decimal" if isinstance(value, bytes):
            return decimal_of(
                int.from_bytes(value, "big", signed=True), int(schema.parameters.get(SCALE, "0"))
            )
        case "org.apache.kafka.connect.data.Date" if isinstance(value, int):
            return EPOCH.date() + datetime.timedelta(days=value)
        case "org.apache.kafka.connect.data.Time" if isinstance(value, int):
            return (EPOCH + datetime.timedelta(milliseconds=value)).time()
        case "org.apache.kafka.connect.data.Timestamp" if isinstance(value, int):
            return from_ms(value)
    return value


def to_ms(value: datetime.datetime) -> int:
    """Return a time as milliseconds. One without a zone counts as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
    return (aware - EPOCH) // _MILLISECOND


def from_ms(value: int) -> datetime.datetime:
    """Return milliseconds as a time."""
    return EPOCH + datetime.timedelta(milliseconds=value)
