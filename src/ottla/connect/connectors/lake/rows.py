"""Records as rows of a table that has columns already.

A value must fit into the column that is there: 1.5 is no whole number. A column that is not there is added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.connect.connectors.lake.target import Partitioning
from ottla.connect.data.arrow import to_tables
from ottla.connect.data.record import Record
from ottla.connect.data.schema import (
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP_SCHEMA,
    Field,
    Type,
    from_ms,
    infer,
    optional,
    struct,
)
from ottla.connect.errors import DataError

_FACTS: Final = {
    "kafka_topic": STRING,
    "kafka_partition": INT32,
    "kafka_offset": INT64,
    "kafka_timestamp": optional(TIMESTAMP_SCHEMA),
    "kafka_key": OPTIONAL_STRING,
}


class Columns:
    """The columns of a table, as far as they are known."""

    def __init__(self, schema: Any, partitioning: Sequence[Partitioning]) -> None:
        self._known: dict[str, Any] = {} if schema is None else {item.name: item.type for item in schema}
        self._partitioning = [item for item in partitioning if item.unit is not None]

    def rows(self, records: Sequence[Record]) -> Any:
        """Return records as one table of Arrow. Raises DataError if one of them does not fit."""
        tables = [self._fitted(table) for table in to_tables(records)]
        try:
            return self._divided(pa.concat_tables(tables, promote_options="permissive"))
        except pa.ArrowException as error:
            raise DataError(f"the values do not fit into columns: {error}") from error

    def learn(self, rows: Any) -> None:
        """Take note of columns that are new."""
        for item in rows.schema:
            self._known[item.name] = item.type

    def _fitted(self, table: Any) -> Any:
        fitted: dict[str, Any] = {}
        for item in table.schema:
            found = _known_part(item.type)
            kind = self._known.get(item.name)
            if (found is None and kind is None) or pa.types.is_null(item.type):
                # There is no value yet that says what the column is.
                continue
            self._check_case(item.name, fitted)
            column = table.column(item.name)
            wanted = found if kind is None else kind if found is None else _wider(kind, found)
            fitted[item.name] = column if wanted == item.type else _cast(item.name, column, wanted)
        if not fitted:
            raise DataError("the record has no value in any column")
        return pa.table(fitted)

    def _check_case(self, name: str, fitted: Mapping[str, Any]) -> None:
        """Raise DataError for a column that differs by case from another: Spark, among others, sees one."""
        if name in self._known:
            return
        folded = name.lower()
        for other in (*self._known, *fitted):
            if other.lower() == folded:
                raise DataError(f"the column {name!r} differs from the column {other!r} by its case only")

    def _divided(self, table: Any) -> Any:
        for item in self._partitioning:
            if item.column not in table.schema.names:
                raise DataError(f"the record has no field {item.column!r}, which divides the table")
            table = table.append_column(item.name, _part(table.column(item.column), item))
        return table


def _wider(known: Any, found: Any) -> Any:
    """Return the type of a column that is there. A struct may get more fields, also within a list."""
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        new = {item.name: item.type for item in found}
        fields = [
            item.with_type(_wider(item.type, new.pop(item.name))) if item.name in new else item
            for item in known
        ]
        return pa.struct([*fields, *(pa.field(name, kind) for name, kind in new.items())])
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(known.value_field.with_type(_wider(known.value_type, found.value_type)))
    if pa.types.is_map(known) and pa.types.is_map(found):
        return pa.map_(known.key_type, known.item_field.with_type(_wider(known.item_type, found.item_type)))
    return known


def _known_part(kind: Any) -> Any:
    """Return a type without what no value has shown yet, as in an empty list. None: it is nothing else."""
    if pa.types.is_null(kind):
        return None
    if pa.types.is_struct(kind):
        parts = [(item, _known_part(item.type)) for item in kind]
        shown = [item.with_type(part) for item, part in parts if part is not None]
        return pa.struct(shown) if shown else None
    if pa.types.is_list(kind):
        part = _known_part(kind.value_type)
        return None if part is None else pa.list_(kind.value_field.with_type(part))
    return kind


def _cast(name: str, column: Any, kind: Any) -> Any:
    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        raise DataError(f"a value of {name!r} does not fit into {kind}: {error}") from error


def _part(times: Any, item: Partitioning) -> Any:
    try:
        if item.unit == "year":
            return pc.cast(pc.year(times), pa.int32())
        if item.unit == "hour":
            return pc.strftime(times, format="%Y-%m-%d-%H")
        return pc.strftime(times, format="%Y-%m" if item.unit == "month" else "%Y-%m-%d")
    except pa.ArrowException as error:
        raise DataError(
            f"{item.column!r} is no time, by which the table could be divided: {error}"
        ) from error


def with_facts(record: Record) -> Record:
    """Return a record with columns that say where it was in the topic."""
    origin = record.origin
    assert origin is not None, "a sink's records come from topics"
    key = origin.key
    try:
        at = None if record.timestamp_ms is None else from_ms(record.timestamp_ms)
    except (OverflowError, ValueError) as error:
        raise DataError(f"{record.timestamp_ms} ms is no time that a column can have") from error
    facts = {
        "kafka_topic": origin.topic,
        "kafka_partition": origin.partition,
        "kafka_offset": origin.offset,
        "kafka_timestamp": at,
        "kafka_key": None if key is None else bytes(key).decode("utf-8", "backslashreplace"),
    }
    return _with_fields(record, _FACTS, facts)


def with_key(record: Record, key: Mapping[str, Any]) -> Record:
    """Return a record whose row has the fields of its key."""
    declared = record.key_schema
    schemas = {
        name: infer(value)
        if declared is None or (field := declared.field_named(name)) is None
        else field.schema
        for name, value in key.items()
    }
    return _with_fields(record, schemas, key)


def _with_fields(record: Record, schemas: Mapping[str, Any], cells: Mapping[str, Any]) -> Record:
    schema, value = record.value_schema, record.value
    if not isinstance(value, Mapping):
        value = {"value": value}
        schema = None if schema is None else struct({"value": optional(schema)})
    missing = {name: cell for name, cell in cells.items() if name not in value}
    if schema is not None and schema.type is Type.STRUCT:
        more = tuple(Field(name, schemas[name]) for name in missing)
        schema = replace(schema, fields=(*schema.fields, *more))
    return replace(record, value_schema=schema, value={**value, **missing})
