"""Values with a schema on their way out: a struct of Arrow in, bytes out, a column at a time.

The schema is Avro, made of the columns. It is registered under `TOPIC-value` before the pipeline starts, so a
change that readers could not follow stops the pipeline before it has written anything.
"""

import io
from collections.abc import Callable
from typing import Any, Final

import fastavro
import pyarrow as pa

from ottla.client.registry.client import RegistryClient, RegistryRefused
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.wire_format import encode_prefix

_SIMPLE: Final = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "long"),
    (pa.types.is_integer, "int"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
)


class Unregistered(Exception):
    """The schema of what a pipeline writes cannot be registered."""


def avro_schema(columns: Any, name: str) -> dict[str, Any]:
    """Return the Avro schema of a struct. Raises InvalidSchema."""
    fields = []
    for place in range(columns.num_fields):
        field = columns.field(place)
        kind = _avro(field.type, f"{name}_{field.name}")
        # A column that may be null is a union, and one that comes later has a default for older records.
        fields.append(
            {"name": field.name, "type": ["null", kind], "default": None}
            if field.nullable
            else {"name": field.name, "type": kind}
        )
    return {"type": "record", "name": name, "fields": fields}


def _avro(kind: Any, name: str) -> Any:
    if pa.types.is_struct(kind):
        return avro_schema(kind, name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, f"{name}_item")}
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise InvalidSchema(f"the keys of a map are {kind.key_type}, and Avro has only strings there")
        return {"type": "map", "values": _nullable(kind.item_field, f"{name}_value")}
    if pa.types.is_decimal(kind):
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-micros"}
    for is_kind, found in _SIMPLE:
        if is_kind(kind):
            return found
    raise InvalidSchema(f"Avro has no type for {kind}")


def _nullable(field: Any, name: str) -> Any:
    kind = _avro(field.type, name)
    return ["null", kind] if field.nullable else kind


def register_columns(url: str, topic: str, schema: str) -> int:
    """Register the schema of a topic's values. Returns its id. Raises Unregistered, with the reason."""
    subject = f"{topic}-value"
    with RegistryClient(url) as registry:
        try:
            return registry.register(subject, schema).id
        except RegistryRefused as error:
            raise Unregistered(
                f"what it writes to topic {topic!r} cannot be registered under {subject!r}: {error}"
            ) from error


def make_encoder(schema: dict[str, Any], schema_id: int) -> Callable[[Any], Any]:
    """Return what turns a column of structs into a column of values."""
    parsed = fastavro.parse_schema(schema)
    prefix = encode_prefix(schema_id)

    def encode(rows: Any) -> Any:
        # Times as numbers: Python has none before the year 1 and after 9999.
        rows = rows.cast(_with_counted_times(rows.type))
        kind, buffer = rows.type, io.BytesIO()
        values: list[bytes | None] = []
        for row in rows.to_pylist():
            if row is None:
                values.append(None)
                continue
            buffer.seek(0)
            buffer.truncate()
            buffer.write(prefix)
            fastavro.schemaless_writer(buffer, parsed, _plain(row, kind))
            values.append(buffer.getvalue())
        return pa.array(values, pa.binary())

    return encode


def _with_counted_times(kind: Any) -> Any:
    """Return a type with numbers of microseconds where it has times."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        fields = (kind.field(place) for place in range(kind.num_fields))
        return pa.struct([field.with_type(_with_counted_times(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_counted_times(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_with_counted_times(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_with_counted_times(kind.item_type)))
    return kind


def _plain(value: Any, kind: Any) -> Any:
    """Return a value as fastavro takes it: Arrow gives maps as lists of pairs."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        fields = (kind.field(place) for place in range(kind.num_fields))
        return {field.name: _plain(value[field.name], field.type) for field in fields}
    if pa.types.is_map(kind):
        return {key: _plain(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return value
