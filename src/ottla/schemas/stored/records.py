"""The records of `_schemas`, byte for byte as Confluent's registry writes them.

Keys and values are compact JSON in UTF-8 without fields that are absent. The order of the fields of a key
matters: compaction compares bytes.
"""

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.schemas.stored.values import (
    Json,
    StoredSchema,
    clean_metadata,
    references_from,
    references_to_json,
)

TENANT: Final = "default"
CONFIG_FIELDS: Final = (
    "alias",
    "aliasForDeks",
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


class Record(NamedTuple):
    """A record of the topic. Without a value it deletes its key."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class Change:
    """What a record says: a kind of key, what it names, and the new content, None if there is none now."""

    kind: str
    subject: str | None = None
    version: int = 0
    context: str = ""
    content: Any = None


def _encode(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")


def _key(kind: str, magic: int, subject: str | None = None, **fields: Any) -> bytes:
    named = {} if subject is None else {"subject": subject}
    return _encode({"keytype": kind, **named, **fields, "magic": magic})


NOOP: Final = Record(_key("NOOP", 0), None)


def schema_record(schema: StoredSchema) -> Record:
    """Return the record of a version."""
    value: Json = {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        "schemaType": schema.schema_type,
    }
    if schema.references:
        value["references"] = references_to_json(schema.references)
    if schema.metadata is not None:
        value["metadata"] = clean_metadata(schema.metadata)
    if schema.rule_set is not None:
        value["ruleSet"] = schema.rule_set
    value |= {"schema": schema.text, "deleted": schema.is_deleted}
    return Record(_schema_key(schema.subject, schema.version), _encode(value))


def schema_tombstone(subject: str, version: int) -> Record:
    """Return the record that removes a version for good."""
    return Record(_schema_key(subject, version), None)


def _schema_key(subject: str, version: int) -> bytes:
    return _key("SCHEMA", 1, subject, version=version)


def delete_subject_record(subject: str, version: int) -> Record:
    """Return the record that deletes all versions up to one."""
    return Record(_key("DELETE_SUBJECT", 0, subject), _encode({"subject": subject, "version": version}))


def clear_subject_record(subject: str | None) -> Record:
    """Return the record that makes a registry forget deleted versions."""
    value = {} if subject is None else {"subject": subject}
    return Record(_key("CLEAR_SUBJECT", 0, subject), _encode(value))


def config_record(subject: str | None, config: Json | None) -> Record:
    """Return the record of a config. None deletes it."""
    key = _key("CONFIG", 0, subject)
    if config is None:
        return Record(key, None)
    named = {} if subject is None else {"subject": subject}
    return Record(key, _encode(named | {name: config[name] for name in CONFIG_FIELDS if name in config}))


def mode_record(subject: str | None, mode: str | None) -> Record:
    """Return the record of a mode. None deletes it."""
    key = _key("MODE", 0, subject)
    if mode is None:
        return Record(key, None)
    named = {} if subject is None else {"subject": subject}
    return Record(key, _encode(named | {"mode": mode}))


def context_record(context: str, *, is_deleted: bool = False) -> Record:
    """Return the record that makes a context known, or that removes it."""
    key = _key("CONTEXT", 0, tenant=TENANT, context=context)
    return Record(key, None if is_deleted else _encode({"tenant": TENANT, "context": context}))


class UnreadableRecord(ValueError):
    """A record that no registry wrote."""


def decode(key: bytes | None, value: bytes | None, timestamp_ms: int) -> Change:
    """Read a record of the topic. Raises UnreadableRecord."""
    try:
        named = json.loads(key or b"")
        content = None if value is None else json.loads(value)
        kind = named["keytype"]
        subject = named.get("subject")
        _check(kind, subject, content)
        if kind == "SCHEMA":
            version = int(named["version"])
            schema = None if content is None else _stored(subject, version, content, timestamp_ms)
            return Change(kind, subject, version, content=schema)
        if kind == "CONTEXT":
            return Change(kind, context=named["context"], content=content)
        if kind == "CONFIG" and content is not None:
            content = {name: content[name] for name in CONFIG_FIELDS if content.get(name) is not None}
        return Change(kind, subject, content=content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableRecord(f"key {key!r}: {error!r}") from error


def _check(kind: str, subject: Any, content: Any) -> None:
    """Refuse what `State.replay` could not apply: one such record must not stop a registry."""
    if not isinstance(content, dict | None):
        raise TypeError("the value is not an object")
    if subject is None and kind in ("SCHEMA", "DELETE_SUBJECT"):
        raise ValueError("the key has no subject")
    if not isinstance(subject, str | None):
        raise TypeError("the subject is not a text")
    if content is not None and kind == "DELETE_SUBJECT" and not isinstance(content["version"], int):
        raise ValueError("the version is not a number")
    if content is not None and kind == "MODE" and not isinstance(content["mode"], str):
        raise ValueError("the mode is not a text")


def _stored(subject: str, version: int, content: Json, timestamp_ms: int) -> StoredSchema:
    return StoredSchema(
        subject=subject,
        version=version,
        id=int(content["id"]),
        # Releases before 8 leave the type out for Avro.
        schema_type=content.get("schemaType") or "AVRO",
        text=content["schema"],
        references=references_from(content.get("references")),
        metadata=clean_metadata(content.get("metadata")),
        rule_set=content.get("ruleSet"),
        is_deleted=bool(content.get("deleted", False)),
        timestamp_ms=timestamp_ms,
    )
