"""What a .proto file says, element by element. Comments are left out."""

from dataclasses import dataclass, field
from typing import NamedTuple

TAG_MAX = (1 << 29) - 1


class Quoted(str):
    """A text that stands in quotes."""

    __slots__ = ()


class Word(str):
    """A number, a name, true or false: what stands without quotes."""

    __slots__ = ()


OptionValue = "Quoted | Word | dict[str, OptionValue] | list[OptionValue] | Option"


@dataclass(frozen=True)
class Option:
    """An option. `(a.b).c = 1` is the extension a.b, whose value is the option c."""

    name: str
    value: "Quoted | Word | dict[str, object] | list[object] | Option"
    is_extension: bool = False


class Range(NamedTuple):
    """Numbers from the first to the last, both included."""

    first: int
    last: int


@dataclass
class FieldElement:
    """A field. A map has the type `map<key, value>`."""

    label: str | None
    type: str
    name: str
    tag: int
    options: list[Option] = field(default_factory=list)
    default: "Quoted | Word | None" = None
    json_name: str | None = None


@dataclass
class GroupElement:
    """A group of proto2: a field and its message in one."""

    label: str | None
    name: str
    tag: int
    fields: list[FieldElement] = field(default_factory=list)


@dataclass
class OneOfElement:
    """Fields of which one at most is set."""

    name: str
    fields: list[FieldElement] = field(default_factory=list)
    groups: list[GroupElement] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass
class ExtendElement:
    """Fields that are added to a message from outside."""

    name: str
    fields: list[FieldElement] = field(default_factory=list)


@dataclass
class ExtensionsElement:
    """Numbers that are left to others."""

    values: list[int | Range]
    options: list[Option] = field(default_factory=list)


@dataclass
class ConstantElement:
    """A value of an enum."""

    name: str
    tag: int
    options: list[Option] = field(default_factory=list)


Reserved = list[int | Range | str]


@dataclass
class EnumElement:
    """An enum."""

    name: str
    constants: list[ConstantElement] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass
class MessageElement:
    """A message."""

    name: str
    fields: list[FieldElement] = field(default_factory=list)
    oneofs: list[OneOfElement] = field(default_factory=list)
    groups: list[GroupElement] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    extensions: list[ExtensionsElement] = field(default_factory=list)
    extends: list[ExtendElement] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    types: "list[MessageElement | EnumElement]" = field(default_factory=list)

    @property
    def is_map_entry(self) -> bool:
        """Say whether the message is what a map consists of, as descriptors have it."""
        return any(option.name == "map_entry" and option.value == "true" for option in self.options)

    def find_field(self, name: str) -> FieldElement | None:
        """Return the field of this name."""
        return next((item for item in self.fields if item.name == name), None)


@dataclass
class RpcElement:
    """A method of a service."""

    name: str
    request: str
    response: str
    is_request_stream: bool = False
    is_response_stream: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass
class ServiceElement:
    """A service."""

    name: str
    rpcs: list[RpcElement] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass
class FileElement:
    """A file."""

    syntax: str | None = None
    edition: str | None = None
    package: str | None = None
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    types: list[MessageElement | EnumElement] = field(default_factory=list)
    extends: list[ExtendElement] = field(default_factory=list)
    services: list[ServiceElement] = field(default_factory=list)
