"""Subjects of a registry: versions, differences, and changes that are planned first.

The registry's client waits for answers, so it works in a thread. What may have changed is always asked for.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ottla.client.registry.client import Registered, RegistryClient, RegistryRefused, without_login
from ottla.client.registry.showing import difference, laid_out, reason
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import Reference

TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
_TIMEOUT_S: Final = 5.0
_PAGE: Final = 50
_NO_SUBJECT: Final = 40401
_NO_LEVEL: Final = "unknown"


class UnreadableSchema(ValueError):
    """What was typed in is no schema."""


class SubjectLine(NamedTuple):
    """A subject in the list, with its latest version. None: there is none any more."""

    name: str
    latest: Registered | None


class SubjectPage(NamedTuple):
    """One page of what was found."""

    lines: Sequence[SubjectLine]
    found: int
    all: int
    page: int
    pages: int
    level: str
    """The compatibility that holds where a subject has none of its own."""


@dataclass(frozen=True)
class SubjectLook:
    """One subject, one of its versions, and what this version has changed."""

    name: str
    level: str
    versions: Sequence[int]
    shown: Registered
    text: str
    compared: int | None
    changes: Sequence[str]
    used_by: Sequence[int]
    """The ids of schemas that refer to this version."""


class NewSchema(NamedTuple):
    """A schema that is to be registered."""

    subject: str
    kind: str
    text: str
    references: tuple[Reference, ...] = ()


class SchemaPlan(NamedTuple):
    """What registering would do."""

    reasons: Sequence[str]
    """Why the registry would refuse it."""
    before: int | None
    """The latest version there is."""
    changes: Sequence[str]
    known: Registered | None
    """The version that is this schema already."""


class Schemas:
    """One registry."""

    def __init__(self, url: str) -> None:
        self._registry = RegistryClient(url, timeout_s=_TIMEOUT_S)
        self.shown_url = ",".join(map(without_login, url.split(",")))

    def close(self) -> None:
        """Close all connections."""
        self._registry.close()

    async def find(self, text: str, page: int) -> SubjectPage:
        """Return the subjects with this text in their names. Raises ClientError."""
        return await asyncio.to_thread(self._find, text.casefold(), page)

    def _find(self, text: str, page: int) -> SubjectPage:
        names = sorted(self._registry.ask("GET", "/subjects"))
        found = [name for name in names if text in name.casefold()]
        pages = max(1, -(-len(found) // _PAGE))
        page = min(max(page, 1), pages)
        shown = found[(page - 1) * _PAGE : page * _PAGE]
        lines = [SubjectLine(name, self._latest(name)) for name in shown]
        return SubjectPage(lines, len(found), len(names), page, pages, self._level("/config"))

    def _latest(self, subject: str) -> Registered | None:
        try:
            return self._registry.latest(subject)
        except RegistryRefused as error:
            if error.code == _NO_SUBJECT:
                return None
            raise

    def _level(self, path: str, **options: Any) -> str:
        answer = self._registry.ask("GET", path, **options)
        return str(answer.get("compatibilityLevel") or _NO_LEVEL)

    async def look(self, subject: str, version: int | None, compared: int | None) -> SubjectLook:
        """Return one subject. Without a version: the latest, compared with the one before it."""
        return await asyncio.to_thread(self._look, subject, version, compared)

    def _look(self, subject: str, version: int | None, compared: int | None) -> SubjectLook:
        path = f"/subjects/{quote(subject, safe='')}/versions"
        versions = sorted(self._registry.ask("GET", path))
        number = versions[-1] if version is None else version
        shown = self._version(subject, number)
        if compared is None:
            compared = max((other for other in versions if other < number), default=None)
        changes: Sequence[str] = ()
        if compared is not None and compared != number:
            changes = difference(
                self._version(subject, compared), shown, f"version {compared}", f"version {number}"
            )
        level = self._level(f"/config/{quote(subject, safe='')}", defaultToGlobal=True)
        used_by = sorted(self._registry.ask("GET", f"{path}/{number}/referencedby") or ())
        return SubjectLook(subject, level, versions, shown, laid_out(shown), compared, changes, used_by)

    def _version(self, subject: str, number: int) -> Registered:
        # The client remembers versions, but a subject may be deleted for good and begin again.
        answer = self._registry.ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{number}")
        used = (
            Reference(one["name"], one["subject"], one["version"]) for one in answer.get("references") or ()
        )
        kind = answer.get("schemaType") or "AVRO"
        return Registered(answer["id"], kind, answer["schema"], tuple(used), subject, answer["version"])

    async def plan(self, new: NewSchema) -> SchemaPlan:
        """Say what registering would do. Raises UnreadableSchema or ClientError."""
        return await asyncio.to_thread(self._planned, new)

    def _planned(self, new: NewSchema) -> SchemaPlan:
        given = Registered(-1, new.kind, new.text, new.references)
        try:
            self._registry.parse(given)
        except (InvalidSchema, ValueError, RecursionError) as error:
            raise UnreadableSchema(f"this is not a schema of type {new.kind}: {error}") from error
        latest = self._latest(new.subject)
        if latest is None:
            return SchemaPlan((), None, (), None)
        messages = self._registry.incompatibilities(new.subject, new.text, new.kind, new.references)
        reasons = [sentence for message in messages if (sentence := reason(message))] or messages
        changes = difference(latest, given, f"version {latest.version}", "the new one")
        return SchemaPlan(reasons, latest.version, changes, self._known(new))

    def _known(self, new: NewSchema) -> Registered | None:
        try:
            # Not by `find`, which would remember what others may delete.
            answer = self._registry.ask("POST", f"/subjects/{quote(new.subject, safe='')}", _body(new))
        except RegistryRefused:
            return None
        return Registered(answer["id"], new.kind, new.text, new.references, new.subject, answer["version"])

    async def register(self, new: NewSchema) -> None:
        """Register a schema. Raises ClientError."""
        path = f"/subjects/{quote(new.subject, safe='')}/versions"
        await asyncio.to_thread(self._registry.ask, "POST", path, _body(new))

    async def delete(self, subject: str, version: int | None) -> None:
        """Delete a subject, or one of its versions. Ids can still be looked up. Raises ClientError."""
        path = f"/subjects/{quote(subject, safe='')}" + ("" if version is None else f"/versions/{version}")
        await asyncio.to_thread(self._registry.ask, "DELETE", path)


def read_references(text: str) -> tuple[Reference, ...]:
    """Read references, one in a line: `NAME=SUBJECT:VERSION`. Raises UnreadableSchema."""
    found = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, rest = line.strip().partition("=")
        subject, colon, version = rest.rpartition(":")
        if not equals or not colon or not version.isdecimal() or len(version) > 9:
            raise UnreadableSchema(f"{line[:60]!r} is not NAME=SUBJECT:VERSION")
        found.append(Reference(name, subject, int(version)))
    return tuple(found)


def _body(new: NewSchema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": new.text, "schemaType": new.kind}
    if new.references:
        body["references"] = [reference._asdict() for reference in new.references]
    return body
