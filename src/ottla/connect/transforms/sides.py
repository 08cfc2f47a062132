"""The part of a record that a transformation changes: its key or its value."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ottla.connect.data.record import Record
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import DataError
from ottla.connect.plugins import Config


class Side:
    """Reads and replaces the key or the value."""

    def __init__(self, *, is_key: bool) -> None:
        self.is_key = is_key

    def get(self, record: Record) -> tuple[Schema | None, Any]:
        """Return the part with its schema."""
        return (record.key_schema, record.key) if self.is_key else (record.value_schema, record.value)

    def put(self, record: Record, schema: Schema | None, value: Any) -> Record:
        """Return the record with another part."""
        if self.is_key:
            return replace(record, key_schema=schema, key=value)
        return replace(record, value_schema=schema, value=value)

    def fields(self, record: Record, purpose: str) -> tuple[Schema | None, Mapping[str, Any]]:
        """Return a part that has fields. Raises DataError for anything else."""
        schema, value = self.get(record)
        if not isinstance(value, Mapping) or (schema is not None and schema.type is not Type.STRUCT):
            kind = type(value).__name__ if schema is None else schema.type.name
            raise DataError(f"Only a struct or a map is supported for {purpose}, found {kind}")
        return schema, value


Make = Callable[[Config, Side], Any]


def on_key(make: Make) -> Callable[[Config], Any]:
    """Return what makes a transformation of keys."""
    return lambda config: make(config, Side(is_key=True))


def on_value(make: Make) -> Callable[[Config], Any]:
    """Return what makes a transformation of values."""
    return lambda config: make(config, Side(is_key=False))
