"""Compatibility levels: which versions a new schema is compared with, and in which direction."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from ottla.schemas.parsed import Difference, ParsedSchema


class Level(StrEnum):
    """What a registry demands of a new version of a schema."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Say whether all versions count, and not only the last."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Say whether the new schema must read what old ones wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """Say whether old schemas must read what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


class Version(NamedTuple):
    """A version of a subject. It is parsed when it is needed."""

    number: int
    parse: Callable[[], ParsedSchema]


def check(
    level: Level, new: ParsedSchema, previous: Sequence[Version], *, is_lenient: bool = False
) -> list[str]:
    """Compare a schema with earlier versions, in their order. Returns what is wrong, nothing if it fits.

    The messages are those of the first version that it does not fit, counted from the last.
    """
    if level is Level.NONE:
        return []
    for version in reversed(previous if level.is_transitive else previous[-1:]):
        old = version.parse()
        found = sentences(level, new, old, is_lenient=is_lenient)
        if found:
            return [*found, f"{{oldSchemaVersion: {version.number}}}", f"{{oldSchema: '{old.text}'}}"]
    return []


def sentences(level: Level, new: ParsedSchema, old: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
    """Compare two schemas by a level."""
    if new.schema_type != old.schema_type:
        return ["Incompatible because of different schema type"]
    found = []
    if level.reads_old:
        found += [_text(item, "new", "old") for item in differences(new, old, is_lenient=is_lenient)]
    if level.is_read_by_old:
        found += [_text(item, "old", "new") for item in differences(old, new, is_lenient=is_lenient)]
    return found


def differences(reader: Any, writer: Any, *, is_lenient: bool = False) -> list[Difference]:
    """Return why one schema cannot read what another one of its type wrote."""
    options = {"is_lenient": True} if is_lenient and reader.schema_type == "JSON" else {}
    found: list[Difference] = reader.differences(writer, **options)
    return found


def _text(item: Difference, reader: str, writer: str) -> str:
    detail = f", additionalInfo:'{item.detail}'" if item.detail else ""
    return f"{{errorType:'{item.kind}', description:'{item.sentence(reader, writer)}'{detail}}}"
