"""Avro types as JSON, key by key as Avro's Java library prints them: the text that a registry stores."""

from typing import Any

from ottla.schemas.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    NamedType,
    RecordType,
    UnionType,
)


def to_json(parsed: AvroType, known: set[str]) -> Any:
    """Return a type as JSON. What is in `known` is printed by its name, and what was printed is added."""
    return _print(parsed, known, None)


def _print(parsed: AvroType, known: set[str], namespace: str | None) -> Any:
    if isinstance(parsed, UnionType):
        return [_print(branch, known, namespace) for branch in parsed.branches]
    if isinstance(parsed, ArrayType):
        return {"type": "array", "items": _print(parsed.items, known, namespace), **parsed.props}
    if isinstance(parsed, MapType):
        return {"type": "map", "values": _print(parsed.values, known, namespace), **parsed.props}
    if isinstance(parsed, NamedType):
        return _print_named(parsed, known, namespace)
    return {"type": parsed.kind, **parsed.props} if parsed.props else parsed.kind


def _print_named(parsed: NamedType, known: set[str], namespace: str | None) -> Any:
    if parsed.full_name in known:
        return parsed.name if parsed.namespace == namespace else parsed.full_name
    known.add(parsed.full_name)
    printed: dict[str, Any] = {"type": parsed.kind, "name": parsed.name}
    if parsed.namespace != namespace:
        printed["namespace"] = parsed.namespace or ""
    if parsed.doc is not None:
        printed["doc"] = parsed.doc
    if isinstance(parsed, RecordType):
        printed["fields"] = [_print_field(field, known, parsed.namespace) for field in parsed.fields]
    elif isinstance(parsed, EnumType):
        printed["symbols"] = list(parsed.symbols)
        if parsed.default is not None:
            printed["default"] = parsed.default
    elif isinstance(parsed, FixedType):
        printed["size"] = parsed.size
    printed |= parsed.props
    if parsed.aliases:
        prefix = f"{parsed.namespace}." if parsed.namespace else ""
        printed["aliases"] = [_short(alias, prefix) for alias in parsed.aliases]
    return printed


def _short(alias: str, prefix: str) -> str:
    rest = alias.removeprefix(prefix)
    return rest if "." not in rest else alias


def _print_field(field: Field, known: set[str], namespace: str | None) -> dict[str, Any]:
    printed: dict[str, Any] = {"name": field.name, "type": _print(field.type, known, namespace)}
    if field.doc is not None:
        printed["doc"] = field.doc
    if field.has_default:
        printed["default"] = field.default
    if field.order != "ascending":
        printed["order"] = field.order
    if field.aliases:
        printed["aliases"] = list(field.aliases)
    return printed | field.props
