"""An Avro schema as a tree of types. Named types may contain themselves."""

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(eq=False)
class AvroType:
    """A type, with the properties that Avro itself gives no meaning."""

    kind: str
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """The name by which a union tells its branches apart."""
        return self.kind


@dataclass(eq=False)
class ArrayType(AvroType):
    """A list of items."""

    items: AvroType = field(kw_only=True)


@dataclass(eq=False)
class MapType(AvroType):
    """Values by text."""

    values: AvroType = field(kw_only=True)


@dataclass(eq=False)
class UnionType(AvroType):
    """One of several types."""

    branches: list[AvroType] = field(kw_only=True)


@dataclass(eq=False)
class NamedType(AvroType):
    """What has a name: it is printed once, and by its name after that."""

    name: str = field(kw_only=True)
    namespace: str | None = field(kw_only=True)
    doc: str | None = None
    aliases: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(eq=False)
class Unresolved(NamedType):
    """A name that is defined further down, or nowhere."""


@dataclass(eq=False)
class EnumType(NamedType):
    """One of several symbols."""

    symbols: tuple[str, ...] = ()
    default: str | None = None


@dataclass(eq=False)
class FixedType(NamedType):
    """A fixed number of bytes."""

    size: int = 0


@dataclass(eq=False)
class Field:
    """A field of a record."""

    name: str
    type: AvroType
    doc: str | None
    has_default: bool
    default: Any
    order: str
    aliases: tuple[str, ...]
    props: dict[str, Any]


@dataclass(eq=False)
class RecordType(NamedType):
    """Fields in their order."""

    fields: list[Field] = field(default_factory=list)

    def find_field(self, name: str) -> Field | None:
        """Return the field of this name."""
        return next((item for item in self.fields if item.name == name), None)
