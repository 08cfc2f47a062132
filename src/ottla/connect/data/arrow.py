"""Records to and from tables of Arrow, which Spark takes and gives."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from ottla.connect.data.record import Record
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    DECIMAL,
    FLOAT64,
    INT32,
    INT64,
    SCALE,
    STRING,
    TIMESTAMP_SCHEMA,
    Field,
    Schema,
    Type,
    decimal_schema,
    optional,
    to_primitive,
)
from ottla.connect.errors import DataError

_WHOLE: Final = "value"
_DECIMAL_DIGITS: Final = 38
_TYPES: Final = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}


def to_tables(records: Sequence[Record]) -> list[pa.Table]:
    """Return records as tables: one for each run of records with the same schema."""
    tables = []
    run: list[Record] = []
    for record in records:
        if run and record.value_schema != run[0].value_schema:
            tables.append(_table(run))
            run = []
        run.append(record)
    return [*tables, _table(run)] if run else tables


def _table(records: list[Record]) -> pa.Table:
    schema = records[0].value_schema
    try:
        if schema is not None and schema.type is Type.STRUCT:
            columns = pa.schema([_field(item) for item in schema.fields])
            rows = [_cells(schema, record.value) for record in records if record.value is not None]
            return pa.Table.from_pylist(rows, schema=columns)
        if schema is not None:
            columns = pa.schema([_field(Field(_WHOLE, optional(schema)))])
            return pa.Table.from_pylist([{_WHOLE: record.value} for record in records], schema=columns)
        rows = [
            record.value if isinstance(record.value, dict) else {_WHOLE: record.value} for record in records
        ]
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"the values do not fit into columns: {error}") from error


def _cells(schema: Schema, value: Any) -> Any:
    """Return a value for Arrow, which has no type for the time of a day that Spark knows."""
    if value is None:
        return None
    match schema.type:
        case Type.STRUCT:
            return {item.name: _cells(item.schema, value.get(item.name)) for item in schema.fields}
        case Type.ARRAY if schema.values is not None:
            return [_cells(schema.values, item) for item in value]
        case Type.MAP if schema.values is not None:
            return [(key, _cells(schema.values, item)) for key, item in value.items()]
        case Type.INT32 if schema.name is not None and schema.name.endswith(".Time"):
            return to_primitive(schema, value)
    return value


def _field(item: Field) -> pa.Field:
    return pa.field(item.name, _type(item.schema), nullable=True)


def _type(schema: Schema) -> pa.DataType:
    if schema.name == DECIMAL:
        return pa.decimal128(_DECIMAL_DIGITS, int(schema.parameters.get(SCALE, "0")))
    if schema.name == DATE_SCHEMA.name:
        return pa.date32()
    if schema.name == TIMESTAMP_SCHEMA.name:
        return pa.timestamp("us", "UTC")
    match schema.type:
        case Type.STRUCT:
            return pa.struct([_field(item) for item in schema.fields])
        case Type.ARRAY if schema.values is not None:
            return pa.list_(_type(schema.values))
        case Type.MAP if schema.keys is not None and schema.values is not None:
            return pa.map_(_type(schema.keys), _type(schema.values))
    return _TYPES[schema.type]


def row_schema(columns: pa.Schema) -> Schema:
    """Return the schema of the rows of a table."""
    return Schema(
        Type.STRUCT, name="row", fields=tuple(Field(item.name, _schema(item.type)) for item in columns)
    )


def _schema(kind: pa.DataType) -> Schema:
    if pa.types.is_decimal(kind):
        return optional(decimal_schema(kind.scale))
    if pa.types.is_struct(kind):
        fields = tuple(Field(item.name, _schema(item.type)) for item in kind)
        return Schema(Type.STRUCT, is_optional=True, fields=fields)
    if pa.types.is_map(kind):
        return Schema(Type.MAP, is_optional=True, keys=_schema(kind.key_type), values=_schema(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Schema(Type.ARRAY, is_optional=True, values=_schema(kind.value_type))
    for is_kind, schema in _KINDS:
        if is_kind(kind):
            return optional(schema)
    return optional(STRING)


_KINDS: Final = (
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int8, Schema(Type.INT8)),
    (pa.types.is_int16, Schema(Type.INT16)),
    (pa.types.is_int32, INT32),
    (pa.types.is_int64, INT64),
    (pa.types.is_float32, Schema(Type.FLOAT32)),
    (pa.types.is_float64, FLOAT64),
    (pa.types.is_binary, BYTES),
    (pa.types.is_large_binary, BYTES),
    (pa.types.is_date, DATE_SCHEMA),
    (pa.types.is_timestamp, TIMESTAMP_SCHEMA),
)
