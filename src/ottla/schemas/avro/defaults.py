"""Whether the default of a field is a value of its type. A union takes what any of its branches takes."""

from typing import Any, Final

from ottla.schemas.avro.model import ArrayType, AvroType, Field, MapType, RecordType, UnionType
from ottla.schemas.errors import InvalidSchema

_INT: Final = 1 << 31
_LONG: Final = 1 << 63


def check_defaults(parsed: AvroType) -> None:
    """Refuse a default that is not a value of its type. Raises InvalidSchema."""
    _check(parsed, set())


def _check(parsed: AvroType, seen: set[int]) -> None:
    if id(parsed) in seen:
        return
    seen.add(id(parsed))
    if isinstance(parsed, ArrayType):
        _check(parsed.items, seen)
    elif isinstance(parsed, MapType):
        _check(parsed.values, seen)
    elif isinstance(parsed, UnionType):
        for branch in parsed.branches:
            _check(branch, seen)
    elif isinstance(parsed, RecordType):
        for field in parsed.fields:
            _check_field(field, parsed)
            _check(field.type, seen)


def _check_field(field: Field, record: RecordType) -> None:
    if field.has_default and not _fits(field.type, field.default):
        raise InvalidSchema(
            f"the default {field.default!r} of field {field.name!r} of {record.full_name!r} is not a valid "
            f"{field.type.full_name}"
        )


def _fits(parsed: AvroType, value: Any) -> bool:
    if isinstance(parsed, UnionType):
        return any(_fits(branch, value) for branch in parsed.branches)
    if isinstance(parsed, ArrayType):
        return isinstance(value, list) and all(_fits(parsed.items, item) for item in value)
    if isinstance(parsed, MapType):
        return isinstance(value, dict) and all(_fits(parsed.values, item) for item in value.values())
    if isinstance(parsed, RecordType):
        return isinstance(value, dict) and all(
            _fits(field.type, value.get(field.name, field.default))
            if field.name in value or field.has_default
            else False
            for field in parsed.fields
        )
    return _fits_simple(parsed.kind, value)


def _fits_simple(kind: str, value: Any) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return is_whole and -_INT <= value < _INT
        case "long":
            return is_whole and -_LONG <= value < _LONG
        case "float" | "double":
            return is_whole or isinstance(value, float)
        case _:
            return isinstance(value, str)
