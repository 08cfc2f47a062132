"""Transformations of fields: with a schema, the schema changes as well."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, parse
from ottla.connect.data.record import Header, Record
from ottla.connect.data.schema import (
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIMESTAMP_SCHEMA,
    Field,
    Schema,
    Type,
    from_ms,
    infer,
    optional,
    struct,
    to_primitive,
)
from ottla.connect.errors import DataError
from ottla.connect.plugins import Config, Plugin, PluginKind
from ottla.connect.transforms.sides import Side, on_key, on_value

_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_MEDIUM, _LOW = Importance.MEDIUM, Importance.LOW
_CASTS: Final = {
    "int8": Schema(Type.INT8),
    "int16": Schema(Type.INT16),
    "int32": INT32,
    "int64": INT64,
    "float32": Schema(Type.FLOAT32),
    "float64": FLOAT64,
    "boolean": BOOLEAN,
    "string": STRING,
}
_FACTS: Final = ("topic.field", "partition.field", "offset.field", "timestamp.field", "static.field")
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def _listed(config: Config, name: str) -> list[str]:
    found: list[str] = parse(name, Kind.LIST, config.get(name, ""))
    return found


def _pairs(config: Config, name: str) -> dict[str, str]:
    pairs = {}
    for part in _listed(config, name):
        left, colon, right = part.partition(":")
        if not colon or not left or not right:
            raise DataError(f"{name} has {part!r}: write name:name")
        pairs[left] = right
    return pairs


class Cast:
    """Changes the type of a whole part, or of some fields."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._whole: Schema | None = None
        self._fields: dict[str, Schema] = {}
        for part in _listed(config, "spec"):
            name, colon, kind = part.partition(":")
            if (kind if colon else name) not in _CASTS:
                raise DataError(f"spec has {part!r}: the type is one of {', '.join(_CASTS)}")
            if colon:
                self._fields[name] = _CASTS[kind]
            else:
                self._whole = _CASTS[name]

    def apply(self, record: Record) -> Record:
        """Return the record with other types."""
        schema, value = self._side.get(record)
        if value is None:
            return record
        if self._whole is not None:
            changed = None if schema is None else self._whole
            return self._side.put(record, changed, _cast(self._whole, schema, value))
        schema, fields = self._side.fields(record, "type casting")
        cells = {
            name: _cast(self._fields[name], _of(schema, name), cell) if name in self._fields else cell
            for name, cell in fields.items()
        }
        return self._side.put(record, None if schema is None else self._schema(schema), cells)

    def _schema(self, schema: Schema) -> Schema:
        fields = tuple(
            Field(item.name, replace(self._fields[item.name], is_optional=item.schema.is_optional))
            if item.name in self._fields
            else item
            for item in schema.fields
        )
        return replace(schema, fields=fields)


def _of(schema: Schema | None, name: str) -> Schema | None:
    found = None if schema is None else schema.field_named(name)
    return None if found is None else found.schema


def _cast(target: Schema, source: Schema | None, value: Any) -> Any:
    if value is None:
        return None
    plain = value if source is None else to_primitive(source, value)
    try:
        if target.type in _BITS:
            number = int(float(plain)) if isinstance(plain, str) and "." in plain else int(plain)
            bits = _BITS[target.type]
            # As Java does: what does not fit wraps around.
            return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        if target.type is Type.BOOLEAN:
            return plain.lower() == "true" if isinstance(plain, str) else bool(plain)
        if target.type is Type.STRING:
            return (
                str(plain).lower()
                if isinstance(plain, bool)
                else str(value if isinstance(value, Decimal) else plain)
            )
        return float(plain)
    except (TypeError, ValueError) as error:
        raise DataError(f"{value!r} cannot be cast to {target.type.value}") from error


class ExtractField:
    """Makes one field the whole part. `a.b` with field.syntax.version=V2 goes down."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        nested = config.get("field.syntax.version", "V1").upper() == "V2"
        self._path = config["field"].split(".") if nested else [config["field"]]

    def apply(self, record: Record) -> Record:
        """Return the record with the field as its part."""
        schema, value = self._side.get(record)
        for name in self._path:
            if value is None:
                return self._side.put(record, None, None)
            if not isinstance(value, Mapping):
                raise DataError(f"there is no field {name!r}: the value has no fields")
            field = None if schema is None else schema.field_named(name)
            if schema is not None and field is None:
                raise DataError(f"Unknown field: {name}")
            schema, value = (None if field is None else field.schema), value.get(name)
        return self._side.put(record, schema, value)


class HoistField:
    """Makes the whole part one field."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._name = config["field"]

    def apply(self, record: Record) -> Record:
        """Return the record with its part as a field."""
        schema, value = self._side.get(record)
        return self._side.put(
            record, None if schema is None else struct({self._name: schema}), {self._name: value}
        )


class InsertField:
    """Adds facts about the record as fields: its topic, partition, offset, time, or a fixed text."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._names = {
            name: (text.rstrip("!?"), text.endswith("!")) for name in _FACTS if (text := config.get(name))
        }
        self._static = config.get("static.value", "")
        if not self._names:
            raise DataError(f"InsertField needs one of {', '.join(_FACTS)}")

    def apply(self, record: Record) -> Record:
        """Return the record with more fields."""
        if self._side.get(record)[1] is None:
            return record
        schema, fields = self._side.fields(record, "field insertion")
        added = {
            target: self._fact(name, record, is_required)
            for name, (target, is_required) in self._names.items()
        }
        cells = {**fields, **{target: value for target, (_, value) in added.items()}}
        if schema is None:
            return self._side.put(
                record, None, {k: v if k not in added else to_primitive(*added[k]) for k, v in cells.items()}
            )
        more = tuple(Field(target, fact) for target, (fact, _) in added.items())
        return self._side.put(record, replace(schema, fields=(*schema.fields, *more)), cells)

    def _fact(self, name: str, record: Record, is_required: bool) -> tuple[Schema, Any]:
        facts: dict[str, tuple[Schema, Any]] = {
            "topic.field": (STRING, record.topic),
            "partition.field": (INT32, record.partition),
            "offset.field": (INT64, None if record.origin is None else record.origin.offset),
            "timestamp.field": (
                TIMESTAMP_SCHEMA,
                None if record.timestamp_ms is None else from_ms(record.timestamp_ms),
            ),
            "static.field": (STRING, self._static),
        }
        schema, value = facts[name]
        return (schema if is_required else optional(schema)), value


class ReplaceField:
    """Keeps, drops or renames fields."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._kept = _listed(config, "include") or _listed(config, "whitelist")
        self._dropped = _listed(config, "exclude") or _listed(config, "blacklist")
        self._renamed = _pairs(config, "renames")

    def _new_name(self, name: str) -> str | None:
        if name in self._dropped or (self._kept and name not in self._kept):
            return None
        return self._renamed.get(name, name)

    def apply(self, record: Record) -> Record:
        """Return the record with other fields."""
        if self._side.get(record)[1] is None:
            return record
        schema, fields = self._side.fields(record, "field replacement")
        cells = {new: cell for name, cell in fields.items() if (new := self._new_name(name)) is not None}
        if schema is None:
            return self._side.put(record, None, cells)
        declared = tuple(
            Field(new, item.schema)
            for item in schema.fields
            if (new := self._new_name(item.name)) is not None
        )
        return self._side.put(record, replace(schema, fields=declared), cells)


class MaskField:
    """Hides fields: by the empty value of their type, or by a text."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._fields = _listed(config, "fields")
        self._text = config.get("replacement")

    def apply(self, record: Record) -> Record:
        """Return the record with hidden fields."""
        if self._side.get(record)[1] is None:
            return record
        schema, fields = self._side.fields(record, "mask fields")
        cells = {
            name: self._masked(cell) if name in self._fields and cell is not None else cell
            for name, cell in fields.items()
        }
        return self._side.put(record, schema, cells)

    def _masked(self, cell: Any) -> Any:
        if self._text:
            if isinstance(cell, str):
                return self._text
            if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
                raise DataError(f"Cannot mask value of type {type(cell).__name__} with a custom replacement")
            return type(cell)(self._text)
        if isinstance(cell, Mapping | list | str | bytes | bool | int | float | Decimal):
            return type(cell)()
        return from_ms(0) if hasattr(cell, "year") else type(cell)()


class Flatten:
    """Makes fields of structs fields of the part itself, with names that are joined."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._delimiter = config.get("delimiter", ".")

    def apply(self, record: Record) -> Record:
        """Return the record without structs inside."""
        if self._side.get(record)[1] is None:
            return record
        schema, fields = self._side.fields(record, "flattening")
        cells: dict[str, Any] = {}
        declared: list[Field] = []
        self._add("", schema, fields, cells, declared, is_optional=False)
        return self._side.put(
            record, None if schema is None else replace(schema, fields=tuple(declared)), cells
        )

    def _add(
        self,
        prefix: str,
        schema: Schema | None,
        fields: Mapping[str, Any],
        cells: dict[str, Any],
        declared: list[Field],
        *,
        is_optional: bool,
    ) -> None:
        for name in fields if schema is None else [item.name for item in schema.fields]:
            full, cell, below = f"{prefix}{name}", fields.get(name), _of(schema, name)
            is_struct = below.type is Type.STRUCT if below is not None else isinstance(cell, Mapping)
            if is_struct:
                inner = is_optional or (below is not None and below.is_optional)
                self._add(f"{full}{self._delimiter}", below, cell or {}, cells, declared, is_optional=inner)
                continue
            cells[full] = cell
            if below is not None:
                declared.append(Field(full, optional(below) if is_optional else below))


class SetSchemaMetadata:
    """Names the schema of a part."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._name = config.get("schema.name")
        self._version = config.get("schema.version")

    def apply(self, record: Record) -> Record:
        """Return the record with another name of its schema."""
        schema, value = self._side.get(record)
        if schema is None:
            raise DataError("Schema required for [updating schema metadata]")
        named = replace(
            schema,
            name=self._name or schema.name,
            version=schema.version if self._version is None else int(self._version),
        )
        return self._side.put(record, named, value)


class ValueToKey:
    """Makes the key from fields of the value."""

    def __init__(self, config: Config) -> None:
        self._names = _listed(config, "fields")

    def apply(self, record: Record) -> Record:
        """Return the record with another key."""
        schema, fields = Side(is_key=False).fields(record, "copying fields from value to key")
        if schema is None:
            return replace(record, key_schema=None, key={name: fields.get(name) for name in self._names})
        declared = {}
        for name in self._names:
            field = schema.field_named(name)
            if field is None:
                raise DataError(f"Field does not exist: {name}")
            declared[name] = field.schema
        return replace(
            record, key_schema=struct(declared), key={name: fields.get(name) for name in self._names}
        )


class HeaderFrom:
    """Copies or moves fields to headers."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._fields = _listed(config, "fields")
        self._headers = _listed(config, "headers")
        if len(self._fields) != len(self._headers):
            raise DataError("'fields' config must have the same number of elements as 'headers' config.")
        self._moves = config["operation"] == "move"

    def apply(self, record: Record) -> Record:
        """Return the record with more headers."""
        schema, fields = self._side.fields(record, "header from")
        headers = tuple(
            Header(header, _of(schema, name) or infer(fields.get(name)), fields.get(name))
            for name, header in zip(self._fields, self._headers, strict=True)
        )
        with_headers = replace(record, headers=(*record.headers, *headers))
        if not self._moves:
            return with_headers
        return ReplaceField({"exclude": ",".join(self._fields)}, self._side).apply(with_headers)


class InsertHeader:
    """Adds a header with a fixed value."""

    def __init__(self, config: Config) -> None:
        self._header = Header(config["header"], STRING, config["value.literal"])

    def apply(self, record: Record) -> Record:
        """Return the record with one more header."""
        return replace(record, headers=(*record.headers, self._header))


class DropHeaders:
    """Removes headers."""

    def __init__(self, config: Config) -> None:
        self._names = _listed(config, "headers")

    def apply(self, record: Record) -> Record:
        """Return the record without some headers."""
        return replace(record, headers=tuple(item for item in record.headers if item.name not in self._names))


_FIELD: Final = Key("field", Kind.STRING, "The name of the field.", importance=_MEDIUM)
_SYNTAX: Final = Key(
    "field.syntax.version", Kind.STRING, "V1: the name of a field. V2: a path with dots.", "V1"
)
_SIDED: Final = (
    (
        "Cast",
        Cast,
        (Key("spec", Kind.LIST, "The types of fields, as field:type, or one type for the whole."),),
    ),
    ("ExtractField", ExtractField, (_FIELD, _SYNTAX)),
    ("HoistField", HoistField, (_FIELD,)),
    (
        "InsertField",
        InsertField,
        tuple(
            Key(
                f"{fact}.field",
                Kind.STRING,
                f"The field for the {doc}. With ! it is required.",
                None,
                _MEDIUM,
            )
            for fact, doc in (
                ("topic", "topic"),
                ("partition", "partition"),
                ("offset", "offset, in sinks"),
                ("timestamp", "time"),
                ("static", "fixed value"),
            )
        )
        + (Key("static.value", Kind.STRING, "The fixed value.", None, _MEDIUM),),
    ),
    (
        "ReplaceField",
        ReplaceField,
        (
            Key("include", Kind.LIST, "The fields to keep. Empty: all.", [], _MEDIUM),
            Key("exclude", Kind.LIST, "The fields to drop.", [], _MEDIUM),
            Key("renames", Kind.LIST, "New names, as old:new.", [], _MEDIUM),
        ),
    ),
    (
        "MaskField",
        MaskField,
        (
            Key("fields", Kind.LIST, "The fields to hide."),
            Key("replacement", Kind.STRING, "A text or number to show instead.", None, _LOW),
        ),
    ),
    ("Flatten", Flatten, (Key("delimiter", Kind.STRING, "What joins names.", ".", _MEDIUM),)),
    (
        "SetSchemaMetadata",
        SetSchemaMetadata,
        (
            Key("schema.name", Kind.STRING, "The name of the schema.", None),
            Key("schema.version", Kind.INT, "The version of the schema.", None),
        ),
    ),
    (
        "HeaderFrom",
        HeaderFrom,
        (
            Key("fields", Kind.LIST, "The fields to take."),
            Key("headers", Kind.LIST, "The headers to make, in the same order."),
            Key("operation", Kind.STRING, "copy or move."),
        ),
    ),
)


def _sided_plugins() -> list[Plugin]:
    plugins = []
    for name, transformation, keys in _SIDED:
        for suffix, on_side in (("Key", on_key), ("Value", on_value)):
            make = on_side(transformation)
            plugins.append(Plugin(f"{_PACKAGE}{name}${suffix}", PluginKind.TRANSFORMATION, make, keys))
    return plugins


PLUGINS: Final = (
    *_sided_plugins(),
    Plugin(
        f"{_PACKAGE}ValueToKey",
        PluginKind.TRANSFORMATION,
        ValueToKey,
        (Key("fields", Kind.LIST, "The fields of the value that make the key."),),
    ),
    Plugin(
        f"{_PACKAGE}InsertHeader",
        PluginKind.TRANSFORMATION,
        InsertHeader,
        (
            Key("header", Kind.STRING, "The name of the header."),
            Key("value.literal", Kind.STRING, "Its value."),
        ),
    ),
    Plugin(
        f"{_PACKAGE}DropHeaders",
        PluginKind.TRANSFORMATION,
        DropHeaders,
        (Key("headers", Kind.LIST, "The names of the headers to remove."),),
    ),
)
