"""What has changed between two Protobuf schemas, by Confluent's rules.

Messages are compared by their names, fields by their numbers. Names of fields, enums, options and services
are free to change. Numbers of one group (`int32`, `bool` and enums, for example) are the same on the wire, so
one may take the place of another.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from ottla.schemas.parsed import Difference
from ottla.schemas.protobuf.elements import (
    EnumElement,
    FieldElement,
    FileElement,
    MessageElement,
    OneOfElement,
)
from ottla.schemas.protobuf.types import SCALARS, TypeInfo, Types, map_parts

_DIFFERENCES_MAX: Final = 1000
_GROUPS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed number"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "32 bits"),
    **dict.fromkeys(("fixed64", "sfixed64"), "64 bits"),
    "float": "float",
    "double": "double",
}
_SENTENCES: Final = {
    "PACKAGE_CHANGED": "The package has changed between the {writer} and the {reader} schema",
    "MESSAGE_REMOVED": "The message at '{path}' of the {writer} schema is missing in the {reader} schema",
    "FIELD_KIND_CHANGED": "The field at '{path}' is a scalar, a message or a map in the {reader} schema, but "
    "not the same in the {writer} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The type of the field at '{path}' of the {reader} schema is written "
    "differently from that of the {writer} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The message of the field at '{path}' of the {reader} schema is not that of "
    "the {writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label of the number at '{path}' has changed between the {writer} and "
    "the {reader} schema",
    "REQUIRED_FIELD_ADDED": "The field at '{path}' is required in the {reader} schema and missing in the "
    "{writer} schema",
    "REQUIRED_FIELD_REMOVED": "The field at '{path}' is required in the {writer} schema and missing in the "
    "{reader} schema",
    "ONEOF_FIELD_REMOVED": "The field of a oneof at '{path}' of the {writer} schema is missing in the "
    "{reader} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "The oneof at '{path}' of the {reader} schema has several fields that "
    "are not in a oneof in the {writer} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "The oneof at '{path}' of the {reader} schema has a field that is "
    "not in it in the {writer} schema",
}


class _Side:
    """One of the two files."""

    def __init__(self, file: FileElement, types: Types) -> None:
        self.file = file
        self.types = types
        self.package = types.package


def compare(original: tuple[FileElement, Types], update: tuple[FileElement, Types]) -> list[Difference]:
    """Return the changes from `original` to `update` that break readers."""
    before, after = _Side(*original), _Side(*update)
    found: list[Difference] = []
    if before.file.package != after.file.package:
        found.append(_difference("PACKAGE_CHANGED", ()))
    comparison = _Comparison(before, after)
    found += islice(comparison.elements(before.file.types, after.file.types, (), ()), _DIFFERENCES_MAX)
    return list(dict.fromkeys(found))


class _Comparison:
    """The comparison of two files. A message that is being compared already is left out."""

    def __init__(self, before: _Side, after: _Side) -> None:
        self._before = before
        self._after = after
        self._packages = before.package, after.package
        self._under_way: set[int] = set()
        self._imported_before: dict[tuple[Any, ...], list[Difference]] = {}

    def elements(
        self,
        before: Sequence[MessageElement | EnumElement],
        after: Sequence[MessageElement | EnumElement],
        path: tuple[str, ...],
        scope: tuple[str, ...],
    ) -> Iterator[Difference]:
        updated = {element.name: element for element in after if isinstance(element, MessageElement)}
        for element in before:
            if not isinstance(element, MessageElement):
                continue
            where, inside = path + (element.name,), scope + (element.name,)
            other = updated.get(element.name)
            if other is not None:
                yield from self.messages(element, other, where, inside)
            elif not element.is_map_entry:
                yield _difference("MESSAGE_REMOVED", where)

    def messages(
        self,
        before: MessageElement,
        after: MessageElement,
        path: tuple[str, ...],
        scope: tuple[str, ...],
    ) -> Iterator[Difference]:
        if id(before) in self._under_way:
            yield from self.elements(before.types, after.types, path, scope)
            return
        self._under_way.add(id(before))
        fields = {field.tag: field for field in before.fields}
        yield from _moved(before, after, fields, path)
        oneofs = {oneof.name: oneof for oneof in after.oneofs}
        for oneof in before.oneofs:
            if oneof.name in oneofs:
                yield from self._oneofs(oneof, oneofs[oneof.name], path + (oneof.name,), scope)
        yield from self._fields(fields, after, path, scope)
        yield from self.elements(before.types, after.types, path, scope)
        self._under_way.discard(id(before))

    def _oneofs(
        self, before: OneOfElement, after: OneOfElement, path: tuple[str, ...], scope: tuple[str, ...]
    ) -> Iterator[Difference]:
        updated = {field.tag: field for field in after.fields}
        for field in before.fields:
            where = path + (str(field.tag),)
            if field.tag in updated:
                yield from self._field(field, updated[field.tag], where, scope)
            else:
                yield _difference("ONEOF_FIELD_REMOVED", where)

    def _fields(
        self,
        fields: dict[int, FieldElement],
        after: MessageElement,
        path: tuple[str, ...],
        scope: tuple[str, ...],
    ) -> Iterator[Difference]:
        updated = {field.tag: field for field in after.fields}
        for tag in sorted({**fields, **updated}):
            where = path + (str(tag),)
            one, other = fields.get(tag), updated.get(tag)
            if one is not None and other is not None:
                yield from self._field(one, other, where, scope)
            elif other is None and one is not None and one.label == "required":
                yield _difference("REQUIRED_FIELD_REMOVED", where)
            elif one is None and other is not None and other.label == "required":
                yield _difference("REQUIRED_FIELD_ADDED", where)

    def _field(
        self, before: FieldElement, after: FieldElement, path: tuple[str, ...], scope: tuple[str, ...]
    ) -> Iterator[Difference]:
        labels = (before.label, after.label)
        yield from self._types(before.type, after.type, labels, path, scope)

    def _types(
        self,
        before: str,
        after: str,
        labels: tuple[str | None, str | None],
        path: tuple[str, ...],
        scope: tuple[str, ...],
    ) -> Iterator[Difference]:
        one, other = self._find(before, scope, 0), self._find(after, scope, 1)
        before = (one and one.map_type) or before
        after = (other and other.map_type) or after
        kind = _kind(before, one)
        if kind != _kind(after, other):
            yield _difference("FIELD_KIND_CHANGED", path)
        elif kind == "scalar":
            yield from _scalars(_group(before, one), _group(after, other), labels, path)
        elif kind == "map":
            parts = zip(map_parts(before) or (), map_parts(after) or (), strict=True)
            for part, updated in parts:
                yield from self._types(part, updated, (None, None), path, scope)
        else:
            yield from self._named(before, after, path, scope)

    def _find(self, kind: str, scope: tuple[str, ...], side: int) -> TypeInfo | None:
        if kind in SCALARS or kind.startswith("map<"):
            return None
        types = (self._before, self._after)[side].types
        return types.look_up(kind, scope, self._packages[side])

    def _named(
        self, before: str, after: str, path: tuple[str, ...], scope: tuple[str, ...]
    ) -> Iterator[Difference]:
        one = self._before.types.find(before, scope, self._packages[0])
        other = self._after.types.find(after, scope, self._packages[1])
        if one is None or other is None:
            if before != after:
                yield _difference("FIELD_NAMED_TYPE_CHANGED", path)
            return
        original, update = self._before.types[one], self._after.types[other]
        local = one.removeprefix(f"{original.package}.")
        if local != other.removeprefix(f"{update.package}."):
            yield _difference("FIELD_NAMED_TYPE_CHANGED", path)
        elif (original.source or update.source) and id(original.element) not in self._under_way:
            yield from self._imported(original, update, tuple(local.split(".")), path)

    def _imported(
        self, original: TypeInfo, update: TypeInfo, scope: tuple[str, ...], path: tuple[str, ...]
    ) -> Iterator[Difference]:
        """Compare messages of imported files too: they are not met on the way through the file itself."""
        if isinstance(original.element, EnumElement) or isinstance(update.element, EnumElement):
            return
        key = id(original.element), id(update.element), scope
        found = self._imported_before.get(key)
        if found is None:
            packages, self._packages = self._packages, (original.package, update.package)
            compared = self.messages(original.element, update.element, scope, scope)
            # Where imports meet again, each level would have the differences of the level below twice.
            found = list(dict.fromkeys(islice(compared, _DIFFERENCES_MAX)))
            self._packages = packages
            self._under_way.discard(id(original.element))
            self._imported_before[key] = found
        yield from found
        if found:
            yield _difference("FIELD_NAMED_TYPE_CHANGED", path)


def _moved(
    before: MessageElement, after: MessageElement, fields: dict[int, FieldElement], path: tuple[str, ...]
) -> Iterator[Difference]:
    """Return what is wrong with fields that have become part of a oneof, and take them out of `fields`."""
    in_oneofs = {field.tag for oneof in before.oneofs for field in oneof.fields}
    for oneof in after.oneofs:
        moved = [field for field in oneof.fields if fields.pop(field.tag, None) is not None]
        is_existing = any(field.tag in in_oneofs for field in oneof.fields if field not in moved)
        if len(moved) > 1:
            yield _difference("MULTIPLE_FIELDS_MOVED_TO_ONEOF", path + (oneof.name,))
        elif moved and is_existing:
            yield _difference("FIELD_MOVED_TO_EXISTING_ONEOF", path + (oneof.name,))


def _kind(kind: str, info: TypeInfo | None) -> str:
    if kind in SCALARS or (info is not None and info.is_enum):
        return "scalar"
    return "map" if kind.startswith("map<") else "message"


def _group(kind: str, info: TypeInfo | None) -> str:
    return "number" if info is not None and info.is_enum else _GROUPS[kind]


def _scalars(
    before: str, after: str, labels: tuple[str | None, str | None], path: tuple[str, ...]
) -> Iterator[Difference]:
    if before != after:
        yield _difference("FIELD_SCALAR_KIND_CHANGED", path)
    elif None not in labels and labels[0] != labels[1] and before != "text":
        yield _difference("FIELD_NUMERIC_LABEL_CHANGED", path)


def _difference(kind: str, path: tuple[str, ...]) -> Difference:
    where = "#/" + "/".join(path)
    return Difference(kind, where, _SENTENCES[kind].replace("{path}", where))
