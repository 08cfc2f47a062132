"""A message of ours as the JSON that Apache Kafka's converters would make of it.

Fields that a version lacks and tagged fields at their default are left out. Bytes are base64, ids are text.
Of record batches Kafka shows the size alone.
"""

import base64
from typing import Any

from tests.golden.schemas import FieldFacts, load_schemas

from ottla.wire.layout import Field, layout_of


def as_kafka_json(message: Any, version: int) -> dict[str, Any]:
    """Return what Kafka's converter says of the same message."""
    return _struct(message, load_schemas()[type(message).__name__].fields, version)


def _struct(value: Any, facts: list[FieldFacts], version: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for field, fact, item in zip(layout_of(type(value)), facts, value, strict=True):
        if version not in field.versions or (version in field.tagged and item == field.default):
            continue
        name = fact.name[0].lower() + fact.name[1:]
        if field.kind == "records" and item is not None:
            result[f"{name}SizeInBytes"] = len(item)
        elif field.is_array and item is not None:
            result[name] = [_value(field, fact, element, version) for element in item]
        else:
            result[name] = _value(field, fact, item, version)
    return result


def _value(field: Field, fact: FieldFacts, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.struct is not None:
        return _struct(value, fact.fields, version)
    if field.kind == "bytes":
        return base64.b64encode(value).decode()
    return str(value) if field.kind == "uuid" else value
