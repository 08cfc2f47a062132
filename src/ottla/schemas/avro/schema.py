"""A parsed Avro schema."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self

from ottla.schemas.avro.compatibility import compare
from ottla.schemas.avro.defaults import check_defaults
from ottla.schemas.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    NamedType,
    RecordType,
    UnionType,
)
from ottla.schemas.avro.parsing import Names, parse_avro
from ottla.schemas.avro.printing import to_json
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_text import compact, parse_json, sorted_keys
from ottla.schemas.parsed import Difference, ParsedSchema, Reference

_LOGICAL: Final = ("logicalType", "precision", "scale")


class AvroSchema(ParsedSchema):
    """An Avro schema. References are named types that other schemas define."""

    schema_type = "AVRO"

    def __init__(
        self, text: str, references: Sequence[Reference] = (), resolved: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(references, resolved or {})
        names: Names = {}
        for name, other in self.resolved.items():
            try:
                parse_avro(parse_json(other), names)
            except InvalidSchema as error:
                raise InvalidSchema(f"the reference {name!r} cannot be used: {error}") from error
        self._referenced = frozenset(names)
        self.root: AvroType = parse_avro(parse_json(text), names)

    @property
    def text(self) -> str:
        """The schema as Avro's Java library prints it."""
        return compact(self.json())

    def json(self) -> Any:
        """Return the schema as JSON, with referenced types by their names."""
        return to_json(self.root, set(self._referenced))

    @property
    def name(self) -> str | None:
        """The full name of a record, an enum or a fixed."""
        return self.root.full_name if isinstance(self.root, NamedType) else None

    def check(self) -> None:
        """Refuse defaults that are not values of their types."""
        check_defaults(self.root)

    def normalized(self) -> Self:
        """Return the schema with its properties and aliases sorted."""
        text = compact(to_json(_normalized(self.root, {}), set(self._referenced)))
        return type(self)(text, self.references, self.resolved)

    def differences(self, writer: Self) -> list[Difference]:
        """Return why this schema cannot read what was written with `writer`."""
        return compare(self.root, writer.root)

    def formatted(self, wanted: str) -> str:
        """Return the text. `resolved` has the referenced types in it."""
        return compact(self.resolved_json()) if wanted == "resolved" else self.text

    def resolved_json(self) -> Any:
        """Return the schema as JSON that needs no reference."""
        return to_json(self.root, set())

    def has_top_level_field(self, name: str) -> bool:
        """Say whether the record has the field."""
        return isinstance(self.root, RecordType) and self.root.find_field(name) is not None


def _normalized(parsed: AvroType, done: dict[int, AvroType]) -> AvroType:
    if id(parsed) in done:
        return done[id(parsed)]
    copy = replace(parsed, props=_sorted_props(parsed))
    done[id(parsed)] = copy
    if isinstance(copy, ArrayType):
        copy.items = _normalized(copy.items, done)
    elif isinstance(copy, MapType):
        copy.values = _normalized(copy.values, done)
    elif isinstance(copy, UnionType):
        copy.branches = [_normalized(branch, done) for branch in copy.branches]
    elif isinstance(copy, RecordType | EnumType | FixedType):
        copy.aliases = tuple(sorted(copy.aliases))
        copy.doc = copy.doc or None
    if isinstance(copy, RecordType):
        copy.fields = [
            replace(
                field,
                type=_normalized(field.type, done),
                aliases=tuple(sorted(field.aliases)),
                props={key: sorted_keys(field.props[key]) for key in sorted(field.props)},
            )
            for field in copy.fields
        ]
    return copy


def _sorted_props(parsed: AvroType) -> dict[str, Any]:
    keys: list[str] = [key for key in _LOGICAL if key in parsed.props and "logicalType" in parsed.props]
    keys += sorted(key for key in parsed.props if key not in keys)
    return {key: sorted_keys(parsed.props[key]) for key in keys}
