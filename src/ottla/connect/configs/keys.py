"""Keys of a configuration: their types, defaults and bounds, with the texts that Kafka's answers have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ottla.model.patterns import InvalidPattern, compile_pattern


class Kind(StrEnum):
    """The type of a value."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the name of a type


class Importance(StrEnum):
    """How much a key matters to most users."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class InvalidValue(ValueError):
    """A value that a key cannot have."""

    def __init__(self, name: str, value: Any, reason: str) -> None:
        super().__init__(f"Invalid value {show(value)} for configuration {name}: {reason}")


class _Required:
    """Stands for the default of a key that has none."""

    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()
NAME_BYTES_MAX: Final = 1_000
"""How long the name of a connector may be. Groups, transactional ids and keys of records begin with it."""
NAMES_MAX: Final = 100
"""How many transformations, or predicates, a connector may have."""
Check = Callable[[str, Any], None]
"""Raises InvalidValue for a value that a key cannot have. Gets None if the value could not be read."""
_WIDTHS: Final = {Kind.INT: "SHORT", Kind.LONG: "SHORT", Kind.BOOLEAN: "SHORT"}
_LONG_BITS: Final = {Kind.INT: 31, Kind.LONG: 63}


@dataclass(frozen=True)
class Key:
    """One key, declared once: the REST API, validation and the reference page read it."""

    name: str
    kind: Kind
    doc: str
    default: Any = REQUIRED
    importance: Importance = Importance.HIGH
    group: str | None = None
    check: Check | None = None
    display_name: str | None = None
    order: int = -1
    width: str | None = None

    @property
    def is_required(self) -> bool:
        """Say whether the key has no default."""
        return self.default is REQUIRED

    def definition(self) -> dict[str, Any]:
        """Return the declaration as the REST API shows it."""
        return {
            "name": self.name,
            "type": self.kind.value,
            "required": self.is_required,
            "default_value": None if self.is_required else text_of(self.default),
            "importance": self.importance.value,
            "documentation": self.doc,
            "group": self.group,
            "width": self.width or ("NONE" if self.group is None else _WIDTHS.get(self.kind, "MEDIUM")),
            "display_name": self.display_name or self.name,
            "dependents": [],
            "order_in_group": self.order,
        }

    def read(self, config: Mapping[str, str | None]) -> Any:
        """Return the value that a configuration gives this key. Raises InvalidValue, or ValueError."""
        text = config.get(self.name)
        if text is None:
            if self.is_required:
                raise ValueError(f'Missing required configuration "{self.name}" which has no default value.')
            return self.default
        value = parse(self.name, self.kind, text)
        if self.check is not None:
            self.check(self.name, value)
        return value

    def errors(self, config: Mapping[str, str | None]) -> list[str]:
        """Return everything that is wrong with the value of this key."""
        try:
            self.read(config)
        except ValueError as error:
            found = [str(error)]
            text = config.get(self.name)
            if self.check is not None and text is not None and not _can_parse(self, text):
                # Kafka goes on to check the value that it could not read.
                try:
                    self.check(self.name, None)
                except ValueError as second:
                    found.append(str(second))
            return found
        return []


def _can_parse(key: Key, text: str) -> bool:
    try:
        parse(key.name, key.kind, text)
    except ValueError:
        return False
    return True


def parse(name: str, kind: Kind, text: str) -> Any:
    """Read a value. Raises InvalidValue."""
    stripped = text.strip()
    if kind is Kind.BOOLEAN:
        if stripped.lower() not in ("true", "false"):
            raise InvalidValue(name, text, "Expected value to be either true or false")
        return stripped.lower() == "true"
    if kind in _LONG_BITS:
        try:
            number = int(stripped)
        except ValueError:
            number = 1 << 64
        if not -(1 << _LONG_BITS[kind]) <= number < 1 << _LONG_BITS[kind]:
            raise InvalidValue(name, text, f"Not a number of type {kind.value}")
        return number
    if kind is Kind.LIST:
        return [part.strip() for part in stripped.split(",")] if stripped else []
    return text if kind is Kind.PASSWORD else stripped


def show(value: Any) -> str:
    """Return a value as Kafka's texts have it."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def text_of(value: Any) -> str | None:
    """Return a value as the text that a configuration has."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def at_least(low: int) -> Check:
    """Allow numbers from a bound on."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise InvalidValue(name, value, "Value must be non-null")
        if value < low:
            raise InvalidValue(name, value, f"Value must be at least {low}")

    return check


def one_of(*choices: str) -> Check:
    """Allow some texts."""

    def check(name: str, value: Any) -> None:
        if value not in choices:
            raise InvalidValue(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def no_duplicates(name: str, value: Any) -> None:
    """Allow each element of a list once."""
    if value is not None and len(set(value)) < len(value):
        raise InvalidValue(name, value, "Duplicate alias provided.")


def plain_name(name: str, value: Any) -> None:
    """Allow the names that a connector can have."""
    if not value:
        raise InvalidValue(name, value, "String may not be empty")
    control = [str(ord(char)) for char in value if ord(char) < 32 or 127 <= ord(char) < 160]
    if control:
        raise InvalidValue(
            name,
            value,
            "String may not contain control sequences but had the following ASCII chars: "
            + ", ".join(control),
        )
    if not is_usable_name(value):
        raise InvalidValue(
            name,
            f"{value[:50]}...",
            f"String may not have half characters or more than {NAME_BYTES_MAX} bytes",
        )


def is_usable_name(name: str) -> bool:
    """Say whether workers can tell each other this name.

    Deviation: Kafka's workers accept others. A name with more bytes than their protocol can count, or one
    without bytes, would let no worker join the group again.
    """
    try:
        return len(name.encode()) <= NAME_BYTES_MAX
    except UnicodeEncodeError:
        return False


def few_names(name: str, value: Any) -> None:
    """Allow each element of a list once, and not very many."""
    no_duplicates(name, value)
    if value is not None and len(value) > NAMES_MAX:
        raise InvalidValue(name, f"{len(value)} names", f"There may be {NAMES_MAX} at most.")


def a_class(known: Callable[[str], bool]) -> Check:
    """Allow classes that there are."""

    def check(name: str, value: Any) -> None:
        if value is not None and not known(value):
            raise InvalidValue(name, value, f"Class {value} could not be found.")

    return check


def a_pattern(name: str, value: Any) -> None:
    """Allow regular expressions.

    Deviation: those of RE2, and not of Java, which can keep a worker busy for ever.
    """
    try:
        compile_pattern(value or "")
    except InvalidPattern as cause:
        raise InvalidValue(
            name, value, f"Not a regular expression in RE2's syntax, which has no looks around: {cause}"
        ) from None


def all_patterns(name: str, value: Any) -> None:
    """Allow lists of regular expressions."""
    for pattern in value or ():
        a_pattern(name, pattern)


def read_all(keys: "tuple[Key, ...]", config: Mapping[str, str | None]) -> dict[str, Any]:
    """Read all keys of a configuration that was checked."""
    return {key.name: key.read(config) for key in keys}
