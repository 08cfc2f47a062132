"""Schemas as they are stored: a version of a subject with all that makes it what it is."""

import hashlib
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ottla.schemas.parsed import Reference

Json = dict[str, Any]


def clean_metadata(value: Json | None) -> Json | None:
    """Return metadata with its parts in order: tags, properties, sensitive names, each sorted."""
    if value is None:
        return None
    cleaned: Json = {}
    if value.get("tags"):
        cleaned["tags"] = {key: sorted(value["tags"][key]) for key in sorted(value["tags"])}
    if value.get("properties"):
        properties = value["properties"]
        cleaned["properties"] = {key: properties[key] for key in sorted(properties)}
    if value.get("sensitive"):
        cleaned["sensitive"] = sorted(value["sensitive"])
    return cleaned


def merge_metadata(older: Json | None, newer: Json | None) -> Json | None:
    """Return both together. Where both say something, the newer counts."""
    if older is None or newer is None:
        return newer if older is None else older
    merged: Json = {}
    for part in ("tags", "properties"):
        together = {**(older.get(part) or {}), **(newer.get(part) or {})}
        if together:
            merged[part] = together
    sensitive = {*(older.get("sensitive") or ()), *(newer.get("sensitive") or ())}
    if sensitive:
        merged["sensitive"] = sorted(sensitive)
    return clean_metadata(merged)


def fingerprint(
    text: str, references: tuple[Reference, ...], metadata: Json | None, rule_set: Json | None = None
) -> bytes:
    """Return what two equal schemas have in common: the MD5 hash that Confluent's registry uses."""
    digest = hashlib.md5(_bytes(text), usedforsecurity=False)
    for name, subject, version in references:
        digest.update(_bytes(name + subject) + struct.pack(">i", version))
    if metadata is not None:
        digest.update(b"\x01")
        for key, tags in (metadata.get("tags") or {}).items():
            digest.update(_bytes(key + "".join(tags)))
        for key, value in (metadata.get("properties") or {}).items():
            digest.update(_bytes(key + value))
        for word in metadata.get("sensitive") or ():
            digest.update(_bytes(word))
    if rule_set is not None:
        digest.update(b"\x01" + _bytes(repr(rule_set)))
    return digest.digest()


def _bytes(text: str) -> bytes:
    # Half a character has no bytes. Java hashes a question mark for it.
    return text.encode(errors="replace")


@dataclass(frozen=True)
class StoredSchema:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None
    is_deleted: bool = False
    timestamp_ms: int | None = None

    @cached_property
    def fingerprint(self) -> bytes:
        """What equal schemas have in common, whatever their subjects and ids."""
        return fingerprint(self.text, self.references, self.metadata, self.rule_set)

    @property
    def guid(self) -> str:
        """The fingerprint as a UUID: the same in every registry."""
        return str(uuid.UUID(bytes=self.fingerprint))

    @property
    def key(self) -> tuple[str, int]:
        """What names this version."""
        return self.subject, self.version


def references_from(value: Any) -> tuple[Reference, ...]:
    """Read references as JSON has them."""
    return tuple(
        Reference(item.get("name") or "", item.get("subject") or "", int(item.get("version") or -1))
        for item in value or ()
        if isinstance(item, Mapping)
    )


def references_to_json(references: tuple[Reference, ...]) -> list[Json]:
    """Return references as JSON has them."""
    return [item._asdict() for item in references]
