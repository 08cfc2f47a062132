"""Whether a reader's Avro schema can read what a writer's schema wrote: the rules of Avro's Java library.

Names are compared without their namespaces, and a reader's alias stands for the full name of the writer's
type. Logical types, defaults and orders play no part. A pair that is being compared already is compatible.
What is wrong within a branch of a union is reported only if the same pair is met elsewhere, with a path that
begins at the branch: Avro does so too.
"""

from typing import Final

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
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import Difference

_DIFFERENCES_MAX: Final = 1000
_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


def compare(reader: AvroType, writer: AvroType) -> list[Difference]:
    """Return why `reader` cannot read what `writer` wrote."""
    return _Comparison().pair(reader, writer, ())


class _Comparison:
    def __init__(self) -> None:
        self._results: dict[tuple[int, int], list[Difference]] = {}

    def pair(self, reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> list[Difference]:
        key = id(reader), id(writer)
        known = self._results.get(key)
        if known is None:
            self._results[key] = []
            # Each level may have those of the level below twice. That something is wrong stays true.
            self._results[key] = known = self._compare(reader, writer, path)[:_DIFFERENCES_MAX]
        return known

    def _compare(self, reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> list[Difference]:
        if isinstance(reader, UnionType) and isinstance(writer, UnionType):
            return [
                _lacking(path + (str(place),), branch)
                for place, branch in enumerate(writer.branches)
                if self.pair(reader, branch, ())
            ]
        if isinstance(writer, UnionType):
            return [
                item
                for place, branch in enumerate(writer.branches)
                for item in self.pair(reader, branch, path + (str(place),))
            ]
        if isinstance(reader, UnionType):
            if any(not self.pair(branch, writer, ()) for branch in reader.branches):
                return []
            return [_lacking(path, writer)]
        if isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
            return self.pair(reader.items, writer.items, path + ("items",))
        if isinstance(reader, MapType) and isinstance(writer, MapType):
            return self.pair(reader.values, writer.values, path + ("values",))
        if isinstance(reader, NamedType) and isinstance(writer, NamedType):
            return self._named(reader, writer, path)
        if reader.kind == writer.kind or writer.kind in _PROMOTIONS.get(reader.kind, ()):
            return []
        return [_type_mismatch(reader, writer, path)]

    def _named(self, reader: NamedType, writer: NamedType, path: tuple[str, ...]) -> list[Difference]:
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            return _names(reader, writer, path) + self._fields(reader, writer, path)
        if isinstance(reader, EnumType) and isinstance(writer, EnumType):
            return _names(reader, writer, path) + _symbols(reader, writer, path)
        if isinstance(reader, FixedType) and isinstance(writer, FixedType):
            return _names(reader, writer, path) + _sizes(reader, writer, path)
        return [_type_mismatch(reader, writer, path)]

    def _fields(self, reader: RecordType, writer: RecordType, path: tuple[str, ...]) -> list[Difference]:
        found: list[Difference] = []
        for place, field in enumerate(reader.fields):
            where = path + ("fields", str(place))
            written = _writer_field(field, writer)
            if written is not None:
                found += self.pair(field.type, written.type, where + ("type",))
            elif field.has_default:
                continue
            elif isinstance(field.type, EnumType) and field.type.default is not None:
                found += self.pair(field.type, writer, where + ("type",))
            else:
                found.append(_missing_default(field, where))
        return found


def _writer_field(field: Field, writer: RecordType) -> Field | None:
    same = writer.find_field(field.name)
    matches = [same] if same is not None else []
    matches += [found for alias in field.aliases if (found := writer.find_field(alias)) is not None]
    if len(matches) > 1:
        raise InvalidSchema(
            f"field {field.name!r} stands for more than one field of {writer.full_name!r}: check its aliases"
        )
    return matches[0] if matches else None


def _names(reader: NamedType, writer: NamedType, path: tuple[str, ...]) -> list[Difference]:
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    where = _path(path + ("name",))
    return [
        Difference(
            "NAME_MISMATCH",
            where,
            f"The name at '{where}' has changed: it is {reader.full_name} in the {{reader}} schema and "
            f"{writer.full_name} in the {{writer}} schema",
            f"expected: {writer.full_name}",
        )
    ]


def _symbols(reader: EnumType, writer: EnumType, path: tuple[str, ...]) -> list[Difference]:
    missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not missing or reader.default is not None:
        return []
    where = _path(path + ("symbols",))
    return [
        Difference(
            "MISSING_ENUM_SYMBOLS",
            where,
            f"The {{reader}} schema lacks the symbols {', '.join(missing)} at '{where}', which the "
            "{writer} schema has, and has no default symbol",
            f"[{', '.join(missing)}]",
        )
    ]


def _sizes(reader: FixedType, writer: FixedType, path: tuple[str, ...]) -> list[Difference]:
    if reader.size == writer.size:
        return []
    where = _path(path + ("size",))
    return [
        Difference(
            "FIXED_SIZE_MISMATCH",
            where,
            f"The size at '{where}' is {reader.size} in the {{reader}} schema and {writer.size} in the "
            "{writer} schema",
            f"expected: {writer.size}, found: {reader.size}",
        )
    ]


def _missing_default(field: Field, path: tuple[str, ...]) -> Difference:
    where = _path(path)
    return Difference(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        where,
        f"The field '{field.name}' at '{where}' of the {{reader}} schema has no default value and is missing "
        "in the {writer} schema",
        field.name,
    )


def _type_mismatch(reader: AvroType, writer: AvroType, path: tuple[str, ...]) -> Difference:
    where = _path(path)
    return Difference(
        "TYPE_MISMATCH",
        where,
        f"The type at '{where}' is {reader.kind.upper()} in the {{reader}} schema, which cannot read the "
        f"{writer.kind.upper()} of the {{writer}} schema",
        f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
    )


def _lacking(path: tuple[str, ...], writer: AvroType) -> Difference:
    where = _path(path)
    return Difference(
        "MISSING_UNION_BRANCH",
        where,
        f"The union at '{where}' of the {{reader}} schema has no branch for {writer.full_name}, which the "
        "{writer} schema has",
        f"reader union lacking writer type: {writer.kind.upper()}",
    )


def _path(path: tuple[str, ...]) -> str:
    return "/" + "/".join(path)
