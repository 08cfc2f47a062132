"""The body of a request about a schema, checked."""

from dataclasses import dataclass
from typing import Any, Final

from ottla.registry.errors import RegistryError
from ottla.schemas.parsed import Reference
from ottla.schemas.stored.values import Json, clean_metadata, references_from

_RULE_KINDS: Final = ("TRANSFORM", "CONDITION")
_NUMBER_MAX: Final = (1 << 31) - 1
_RULE_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD")


@dataclass(frozen=True)
class SchemaRequest:
    """A schema that a client sent. Without an id and a version the registry chooses them."""

    text: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    id: int = -1
    version: int = 0

    @property
    def has_text(self) -> bool:
        """Say whether there is a schema, or only something to add to the one there is."""
        return bool(self.text.strip())


def read_request(body: Json) -> SchemaRequest:
    """Read the body of a request. What is not known is ignored. Raises RegistryError."""
    _check_rules(body.get("ruleSet"))
    references = body.get("references")
    if references is not None and not isinstance(references, list):
        raise _wrong("references", "a list")
    metadata = body.get("metadata")
    if metadata is not None:
        _check_metadata(metadata)
    return SchemaRequest(
        text=_get(body, "schema", str, "a text") or "",
        schema_type=_get(body, "schemaType", str, "a text") or "AVRO",
        references=references_from(references),
        metadata=clean_metadata(metadata),
        id=_number(body, "id", -1),
        version=_number(body, "version", 0),
    )


def _get(body: Json, name: str, kind: type, wanted: str) -> Any:
    value = body.get(name)
    if value is not None and not isinstance(value, kind):
        raise _wrong(name, wanted)
    return value


def _number(body: Json, name: str, default: int) -> int:
    value = _get(body, name, int, "a whole number")
    if value is not None and not -1 <= value <= _NUMBER_MAX:
        # Later ids would be larger still, and a record has four bytes for one.
        raise _wrong(name, f"a whole number up to {_NUMBER_MAX}")
    return default if value is None else int(value)


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise _wrong("metadata", "an object")
    properties, tags = metadata.get("properties") or {}, metadata.get("tags") or {}
    if not isinstance(properties, dict) or not all(isinstance(item, str) for item in properties.values()):
        raise _wrong("metadata.properties", "texts by their names")
    if not isinstance(tags, dict) or not all(map(_is_texts, tags.values())):
        raise _wrong("metadata.tags", "lists of texts by their names")


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _check_rules(rule_set: Any) -> None:
    if rule_set is None:
        return
    if not isinstance(rule_set, dict):
        raise _wrong("ruleSet", "an object")
    for part in ("migrationRules", "domainRules", "encodingRules"):
        for rule in rule_set.get(part) or ():
            if not isinstance(rule, dict):
                raise _wrong(f"ruleSet.{part}", "a list of objects")
            for name, allowed in (("kind", _RULE_KINDS), ("mode", _RULE_MODES)):
                if rule.get(name) is not None and rule[name] not in allowed:
                    raise _wrong(f"ruleSet.{part}.{name}", f"one of {', '.join(allowed)}")


def _wrong(name: str, wanted: str) -> RegistryError:
    return RegistryError(400, f"Cannot deserialize {name}: it must be {wanted}")
