"""A JSON Schema as a tree of nodes, one class for each kind of value that keywords are about.

A schema with keywords of several kinds is a `Combined` node of all of them. That is how Confluent's registry
sees a schema, and its rules of compatibility are rules about these nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Node:
    """A schema. `key` is equal for equal schemas."""

    key: str
    has_default: bool = field(default=False, kw_only=True)
    connect_type: Any = field(default=None, kw_only=True)


class Anything(Node):
    """The schema `{}` or `true`."""


class Nothing(Node):
    """The schema `false`."""


class Boolean(Node):
    """true or false."""


class Null(Node):
    """null."""


class Conditional(Node):
    """if, then, else: they are not compared."""


@dataclass(eq=False)
class Reference(Node):
    """A `$ref`. Its target is loaded when it is asked for, because it may contain the reference."""

    load: Callable[[], Node]

    def target(self) -> Node:
        """Return what the reference leads to."""
        return self.load()


@dataclass(eq=False)
class Text(Node):
    """Keywords of strings."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


@dataclass(eq=False)
class Number(Node):
    """Keywords of numbers."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    multiple_of: float | None = None
    is_integer: bool = False


@dataclass(eq=False)
class Enumeration(Node):
    """A list of permitted values, each as its text."""

    values: frozenset[str]


@dataclass(eq=False)
class Constant(Node):
    """One permitted value, as its text."""

    value: str


@dataclass(eq=False)
class Negation(Node):
    """Everything but a schema."""

    refused: Node


@dataclass(eq=False)
class Combined(Node):
    """allOf, anyOf or oneOf."""

    criterion: str
    branches: list[Node]
    is_generated: bool = False
    """Whether keywords beside each other are the reason, and not a keyword of this name."""


@dataclass(eq=False)
class Rest:
    """What may be there beside what is named: properties of an object, items of an array."""

    is_permitted: bool = True
    schema: Node | None = None


@dataclass(eq=False)
class Object(Node):
    """Keywords of objects."""

    properties: dict[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    patterns: list[tuple[str, Node]] = field(default_factory=list)
    additional: Rest = field(default_factory=Rest)
    unevaluated: Node | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    property_dependencies: dict[str, frozenset[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Node] = field(default_factory=dict)


@dataclass(eq=False)
class Array(Node):
    """Keywords of arrays."""

    all_items: Node | None = None
    items: list[Node] = field(default_factory=list)
    additional: Rest = field(default_factory=Rest)
    unevaluated: Node | None = None
    min_items: int | None = None
    max_items: int | None = None
    is_unique: bool = False
    min_contains: int | None = None
    max_contains: int | None = None
