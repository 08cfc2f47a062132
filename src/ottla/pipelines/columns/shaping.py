"""Decoded values as Arrow takes them for a type.

What has to be done for a type is found out once, not for each value: most fields need nothing at all, and
rows of only such fields are left alone.
"""

import base64
import datetime
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ottla.pipelines.columns.schema_types import ANYTHING

Shape = Callable[[Any], Any]


def shape_for(kind: Any) -> Shape | None:
    """Return what makes a value, which is not None, fit a type. None: all values that can fit do already."""
    if pa.types.is_struct(kind):
        return _shape_of_fields([(field.name, shape_for(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return _shape_of_items(shape_for(kind.value_type))
    if pa.types.is_map(kind):
        return _shape_of_map(shape_for(kind.item_type))
    if kind == ANYTHING:
        return _text
    if pa.types.is_integer(kind):
        return _milliseconds if kind == pa.int32() else _microseconds
    return None


def _shape_of_fields(shapes: list[tuple[str, Shape | None]]) -> Shape | None:
    needed = [(name, shape) for name, shape in shapes if shape is not None]
    if not needed:
        return None

    def shape_fields(value: Any) -> Any:
        # It was decoded for this row alone, so it may be changed.
        for name, shape in needed:
            item = value.get(name)
            if item is not None:
                value[name] = shape(item)
        return value

    return shape_fields


def _shape_of_items(shape: Shape | None) -> Shape | None:
    if shape is None:
        return None
    return lambda value: [None if item is None else shape(item) for item in value]


def _shape_of_map(shape: Shape | None) -> Shape:
    """Arrow takes maps as lists of pairs."""

    def shape_map(value: Any) -> Any:
        return [
            (str(key), item if item is None or shape is None else shape(item)) for key, item in value.items()
        ]

    return shape_map


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> str:
    """Return what JSON has no form of as a text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def _milliseconds(value: Any) -> Any:
    """Return a time of the day as Avro counts it in an `int`. All else is a number already."""
    return _microseconds(value) // 1000 if type(value) is datetime.time else value


def _microseconds(value: Any) -> Any:
    if type(value) is not datetime.time:
        return value
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
