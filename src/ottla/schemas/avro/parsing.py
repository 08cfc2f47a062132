"""From JSON to Avro types. It accepts what Avro's Java parser accepts, also names defined further down."""

import re
from typing import Any, Final

from ottla.schemas.avro.model import (
    PRIMITIVES,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    NamedType,
    RecordType,
    UnionType,
    Unresolved,
)
from ottla.schemas.errors import InvalidSchema

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_FIELD_RESERVED: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))
_ORDERS: Final = ("ascending", "descending", "ignore")
_DEPTH_MAX: Final = 200

Names = dict[str, NamedType]


def parse_avro(value: Any, names: Names) -> AvroType:
    """Parse a schema. New names are added to `names`; those that are there already can be used."""
    parsed = _parse(value, names, None, 0)
    return _resolve(parsed, names, set())


def _parse(value: Any, names: Names, namespace: str | None, depth: int) -> AvroType:
    if depth > _DEPTH_MAX:
        raise InvalidSchema(f"it is nested deeper than {_DEPTH_MAX} levels")
    if isinstance(value, str):
        return _by_name(value, names, namespace)
    if isinstance(value, list):
        return _union(value, names, namespace, depth)
    if not isinstance(value, dict):
        raise InvalidSchema(f"{value!r} is not a type: use a name, an object or a list")
    kind = value.get("type")
    if isinstance(kind, dict | list):
        return _parse(kind, names, namespace, depth + 1)
    if not isinstance(kind, str):
        raise InvalidSchema('a type is missing: each object needs a "type"')
    if kind in PRIMITIVES:
        return AvroType(kind, _props(value, _RESERVED))
    return _complex(kind, value, names, namespace, depth)


def _complex(kind: str, value: dict[str, Any], names: Names, namespace: str | None, depth: int) -> AvroType:
    match kind:
        case "array":
            items = _parse(_need(value, "items", "an array"), names, namespace, depth + 1)
            return ArrayType(kind, _props(value, _RESERVED), items=items)
        case "map":
            values = _parse(_need(value, "values", "a map"), names, namespace, depth + 1)
            return MapType(kind, _props(value, _RESERVED), values=values)
        case "record" | "error":
            return _record(kind, value, names, namespace, depth)
        case "enum":
            return _enum(value, names, namespace)
        case "fixed":
            return _fixed(value, names, namespace)
        case _:
            return _by_name(kind, names, namespace)


def _by_name(name: str, names: Names, namespace: str | None) -> AvroType:
    if name in PRIMITIVES:
        return AvroType(name)
    space, _, short = name.rpartition(".")
    wanted = Unresolved("unresolved", name=short, namespace=space or namespace)
    # A name without a namespace is looked for in the enclosing one first, and then without any.
    return names.get(wanted.full_name) or (names.get(name) if not space else None) or wanted


def _union(value: list[Any], names: Names, namespace: str | None, depth: int) -> UnionType:
    branches = [_parse(item, names, namespace, depth + 1) for item in value]
    seen: set[str] = set()
    for branch in branches:
        if isinstance(branch, UnionType):
            raise InvalidSchema("a union contains a union: write one list of all types")
        if branch.full_name in seen:
            raise InvalidSchema(f"a union has the type {branch.full_name!r} twice")
        seen.add(branch.full_name)
    return UnionType("union", branches=branches)


def _record(kind: str, value: dict[str, Any], names: Names, namespace: str | None, depth: int) -> RecordType:
    name, space, doc, aliases = _heading(value, namespace)
    record = RecordType(kind, _props(value, _RESERVED), name=name, namespace=space, doc=doc, aliases=aliases)
    fields = value.get("fields")
    if not isinstance(fields, list):
        raise InvalidSchema(f"record {record.full_name!r} has no list of fields")
    for item in fields:
        field = _field(item, record, names, depth)
        if record.find_field(field.name) is not None:
            raise InvalidSchema(f"record {record.full_name!r} has the field {field.name!r} twice")
        record.fields.append(field)
    # Within itself it is a name that is defined further down, as in Avro's parser.
    _define(record, names)
    return record


def _field(item: Any, record: RecordType, names: Names, depth: int) -> Field:
    if not isinstance(item, dict):
        raise InvalidSchema(f"a field of {record.full_name!r} is not an object")
    name = item.get("name")
    if not isinstance(name, str):
        raise InvalidSchema(f"a field of {record.full_name!r} has no name")
    _check_name(name)
    if "type" not in item:
        raise InvalidSchema(f"field {name!r} of {record.full_name!r} has no type")
    order = item.get("order", "ascending")
    if not isinstance(order, str) or order.lower() not in _ORDERS:
        raise InvalidSchema(f"field {name!r}: {order!r} is not an order: use one of {', '.join(_ORDERS)}")
    return Field(
        name=name,
        type=_parse(item["type"], names, record.namespace, depth + 1),
        doc=_text(item.get("doc")),
        has_default="default" in item,
        default=item.get("default"),
        order=order.lower(),
        aliases=_strings(item.get("aliases"), f"the aliases of field {name!r}"),
        props=_props(item, _FIELD_RESERVED),
    )


def _enum(value: dict[str, Any], names: Names, namespace: str | None) -> EnumType:
    name, space, doc, aliases = _heading(value, namespace)
    symbols = _strings(_need(value, "symbols", f"enum {name!r}"), f"the symbols of {name!r}")
    for symbol in symbols:
        _check_name(symbol)
    if len(set(symbols)) < len(symbols):
        raise InvalidSchema(f"enum {name!r} has a symbol twice")
    default = _text(value.get("default"))
    if default is not None and default not in symbols:
        raise InvalidSchema(f"the default {default!r} of enum {name!r} is not one of its symbols")
    enum = EnumType(
        "enum",
        _props(value, _RESERVED | {"default"}),
        name=name,
        namespace=space,
        doc=doc,
        aliases=aliases,
        symbols=symbols,
        default=default,
    )
    _define(enum, names)
    return enum


def _fixed(value: dict[str, Any], names: Names, namespace: str | None) -> FixedType:
    name, space, doc, aliases = _heading(value, namespace)
    size = value.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InvalidSchema(f"fixed {name!r} has no size")
    fixed = FixedType(
        "fixed",
        _props(value, _RESERVED),
        name=name,
        namespace=space,
        doc=doc,
        aliases=aliases,
        size=size,
    )
    _define(fixed, names)
    return fixed


def _heading(
    value: dict[str, Any], namespace: str | None
) -> tuple[str, str | None, str | None, tuple[str, ...]]:
    name = value.get("name")
    if not isinstance(name, str):
        raise InvalidSchema(f"a {value['type']} has no name")
    given = value.get("namespace")
    space, _, short = name.rpartition(".")
    if not space:
        space = given if isinstance(given, str) else namespace or ""
    _check_name(short)
    names = _strings(value.get("aliases"), f"the aliases of {name!r}")
    aliases = tuple(alias if "." in alias or not space else f"{space}.{alias}" for alias in names)
    return short, space or None, _text(value.get("doc")), aliases


def _define(named: NamedType, names: Names) -> None:
    if named.full_name in names:
        raise InvalidSchema(f"{named.full_name!r} is defined twice")
    if named.namespace is None and named.name in PRIMITIVES:
        raise InvalidSchema(f"{named.name!r} is a primitive type and cannot be defined")
    names[named.full_name] = named


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSchema(f"{name!r} is not a name: use letters, digits and _, not beginning with a digit")


def _need(value: dict[str, Any], key: str, what: str) -> Any:
    if key not in value:
        raise InvalidSchema(f"{what} has no {key}")
    return value[key]


def _strings(value: Any, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidSchema(f"{what} are not a list of names")
    return tuple(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _props(value: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in reserved}


def _resolve(parsed: AvroType, names: Names, seen: set[int]) -> AvroType:
    """Put the types in place of names that were used before they were defined."""
    if isinstance(parsed, Unresolved):
        # Avro's parser looks outside the namespace only among the types that came before.
        found = names.get(parsed.full_name)
        if found is None:
            raise InvalidSchema(f"the type {parsed.full_name!r} is not defined: is a reference missing?")
        return found
    if id(parsed) in seen:
        return parsed
    seen.add(id(parsed))
    if isinstance(parsed, ArrayType):
        parsed.items = _resolve(parsed.items, names, seen)
    elif isinstance(parsed, MapType):
        parsed.values = _resolve(parsed.values, names, seen)
    elif isinstance(parsed, UnionType):
        parsed.branches = [_resolve(branch, names, seen) for branch in parsed.branches]
    elif isinstance(parsed, RecordType):
        for field in parsed.fields:
            field.type = _resolve(field.type, names, seen)
    return parsed
