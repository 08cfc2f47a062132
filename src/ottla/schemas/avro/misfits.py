"""Where a value does not fit an Avro schema. It is only asked about values that do not."""

import datetime
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.schemas.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)

_RANGES: Final = {"int": 1 << 31, "long": 1 << 63}
# What the writer takes for logical types beside what it takes for the plain ones.
_LOGICAL: Final = (datetime.date, datetime.time, datetime.datetime, decimal.Decimal, uuid.UUID)
_PLAIN: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "bytes": (bytes, bytearray),
    "string": (str,),
    "fixed": (bytes, bytearray),
    "enum": (str,),
}


def find_misfit(schema: AvroType, value: Any) -> str | None:
    """Return a sentence that names the field that does not fit, or None if all seem to."""
    return _find(schema, value, "")


def _find(schema: AvroType, value: Any, path: str) -> str | None:
    if isinstance(schema, RecordType):
        return _find_in_record(schema, value, path)
    if isinstance(schema, ArrayType):
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return _wrong(path, "an array", value)
        found = (_find(schema.items, item, f"{path}[{place}]") for place, item in enumerate(value))
        return next((sentence for sentence in found if sentence), None)
    if isinstance(schema, MapType):
        if not isinstance(value, Mapping):
            return _wrong(path, "a map", value)
        found = (_find(schema.values, item, f"{path}[{key!r}]") for key, item in value.items())
        return next((sentence for sentence in found if sentence), None)
    if isinstance(schema, UnionType):
        return _find_in_union(schema, value, path)
    return _find_simple(schema, value, path)


def _find_in_record(schema: RecordType, value: Any, path: str) -> str | None:
    if not isinstance(value, Mapping):
        return _wrong(path, f"a {schema.full_name}", value)
    for field in schema.fields:
        where = f"{path}.{field.name}" if path else field.name
        if field.name not in value:
            if not field.has_default:
                return f"field {where} is missing, and has no default"
            continue
        sentence = _find(field.type, value[field.name], where)
        if sentence:
            return sentence
    extra = [name for name in value if schema.find_field(str(name)) is None]
    if extra:
        where = f"{path}.{extra[0]}" if path else extra[0]
        return f"field {where} is not in the schema {schema.full_name}"
    return None


def _find_in_union(schema: UnionType, value: Any, path: str) -> str | None:
    sentences = [_find(branch, value, path) for branch in schema.branches]
    if None in sentences:
        return None
    if isinstance(value, Mapping):
        # The branch that a dict was meant for says more than that none fits.
        for branch, sentence in zip(schema.branches, sentences, strict=True):
            if isinstance(branch, RecordType):
                return sentence
    return _wrong(path, " or ".join(branch.full_name for branch in schema.branches), value)


def _find_simple(schema: AvroType, value: Any, path: str) -> str | None:
    if "logicalType" in schema.props and isinstance(value, _LOGICAL):
        return None
    is_bool = isinstance(value, bool) and schema.kind != "boolean"
    if is_bool or not isinstance(value, _PLAIN[schema.kind]):
        return _wrong(path, f"a {schema.full_name}", value)
    limit = _RANGES.get(schema.kind)
    if isinstance(value, int) and limit is not None and not -limit <= value < limit:
        return f"{_named(path)} is {value}, which is out of range for {schema.kind}"
    if isinstance(schema, EnumType) and value not in schema.symbols:
        return f"{_named(path)} is {value!r}, which is not one of {', '.join(schema.symbols)}"
    if isinstance(schema, FixedType) and isinstance(value, bytes) and len(value) != schema.size:
        return f"{_named(path)} has {len(value)} bytes, not {schema.size}"
    return None


def _named(path: str) -> str:
    return f"field {path}" if path else "the value"


def _wrong(path: str, wanted: str, value: Any) -> str:
    return f"{_named(path)} is {value!r}, which is not {wanted}"
