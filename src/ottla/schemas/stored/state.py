"""What the records of `_schemas` add up to. Only `replay` changes it; everything else looks things up.

Records are replayed in the order of the topic, by the instance that wrote them too. So all instances know the
same, and a registry that starts knows what the last one knew.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace

from ottla.schemas.stored.records import Change
from ottla.schemas.stored.subjects import ALL_CONTEXTS, DEFAULT_CONTEXT, GLOBAL_CONTEXT, Subject, context_of
from ottla.schemas.stored.values import Json, StoredSchema

_logger = logging.getLogger(__name__)

Key = tuple[str, int]


class _Ids:
    """The ids of one context."""

    def __init__(self) -> None:
        self.highest = 0
        self.keys: dict[int, set[Key]] = {}
        self.by_fingerprint: dict[bytes, int] = {}


class State:
    """The registry as far as its topic was read."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[int, StoredSchema]] = {}
        self._ids: dict[str, _Ids] = {}
        self._referrers: dict[Key, set[Key]] = {}
        self._configs: dict[str | None, Json] = {}
        self._modes: dict[str | None, str] = {}
        self._contexts: dict[str, None] = {}

    # Changes.

    def replay(self, change: Change) -> None:
        """Apply a record."""
        match change.kind:
            case "SCHEMA":
                self._replay_schema(change)
            case "CONFIG":
                _put(self._configs, change.subject, change.content)
            case "MODE":
                _put(self._modes, change.subject, change.content and change.content["mode"])
            case "DELETE_SUBJECT":
                self._replay_delete_subject(change)
            case "CLEAR_SUBJECT":
                self._replay_clear_subject(change)
            case "CONTEXT":
                if change.content is None:
                    self._contexts.pop(change.context, None)
                else:
                    self._contexts[change.context] = None
            case "NOOP":
                pass
            case _:
                _logger.warning("a record of the unknown kind %r is ignored", change.kind)

    def _replay_schema(self, change: Change) -> None:
        assert change.subject is not None, "a schema has a subject"
        versions = self._versions.get(change.subject, {})
        old = versions.get(change.version)
        new: StoredSchema | None = change.content
        if new is not None and self._is_taken(new):
            # Two instances wrote at the same time. What came first counts, for all that read the topic.
            _logger.warning(
                "version %d of subject %r is ignored, because its id %d belongs to another schema",
                new.version,
                new.subject,
                new.id,
            )
            return
        if old is not None:
            self._forget(old)
        if new is not None:
            self._versions.setdefault(change.subject, {})[change.version] = new
            self._learn(new)

    def _is_taken(self, schema: StoredSchema) -> bool:
        known = self.find_by_id(schema.id, context_of(schema.subject))
        return known is not None and known.key != schema.key and known.fingerprint != schema.fingerprint

    def _learn(self, schema: StoredSchema) -> None:
        subject = Subject.parse(schema.subject)
        ids = self._ids.setdefault(subject.context, _Ids())
        ids.highest = max(ids.highest, schema.id)
        ids.keys.setdefault(schema.id, set()).add(schema.key)
        ids.by_fingerprint[schema.fingerprint] = schema.id
        for reference in schema.references:
            key = str(subject.beside(reference.subject)), reference.version
            self._referrers.setdefault(key, set()).add(schema.key)

    def _forget(self, schema: StoredSchema) -> None:
        subject = Subject.parse(schema.subject)
        versions = self._versions[schema.subject]
        del versions[schema.version]
        if not versions:
            del self._versions[schema.subject]
        ids = self._ids[subject.context]
        ids.keys[schema.id].discard(schema.key)
        if not ids.keys[schema.id]:
            del ids.keys[schema.id]
            ids.by_fingerprint.pop(schema.fingerprint, None)
        for reference in schema.references:
            key = str(subject.beside(reference.subject)), reference.version
            self._referrers.get(key, set()).discard(schema.key)

    def _replay_delete_subject(self, change: Change) -> None:
        assert change.subject is not None, "the key has a subject"
        if change.content is None:
            return
        versions = self._versions.get(change.subject, {})
        for number in versions:
            if number <= change.content["version"]:
                versions[number] = replace(versions[number], is_deleted=True)

    def _replay_clear_subject(self, change: Change) -> None:
        within = None if change.subject is None else Subject.parse(change.subject)
        for subject in list(self._versions):
            if _is_within(subject, within):
                for schema in list(self._versions[subject].values()):
                    if schema.is_deleted:
                        self._forget(schema)

    # Versions.

    def versions(self, subject: str, *, deleted: bool = False) -> list[StoredSchema]:
        """Return the versions of a subject in their order, deleted ones too if wanted."""
        found = self._versions.get(subject, {})
        return [found[number] for number in sorted(found) if deleted or not found[number].is_deleted]

    def find(self, subject: str, version: int, *, deleted: bool = False) -> StoredSchema | None:
        """Return a version. -1 is the latest."""
        if version < 0:
            return next(reversed(self.versions(subject, deleted=deleted)), None)
        found = self._versions.get(subject, {}).get(version)
        return None if found is None or (found.is_deleted and not deleted) else found

    def next_version(self, subject: str) -> int:
        """Return the number of the next version. Numbers of deleted versions are not used again."""
        return max(self._versions.get(subject, {}), default=0) + 1

    def has_subject(self, subject: str, *, deleted: bool = False) -> bool:
        """Say whether there is a schema under a subject, or under any subject of a context."""
        parsed = Subject.parse(subject)
        if not parsed.is_context:
            return bool(self.versions(subject, deleted=deleted))
        return any(
            _is_within(name, parsed) and self.versions(name, deleted=deleted) for name in self._versions
        )

    def has_any_subject(self) -> bool:
        """Say whether there is any schema that is not deleted."""
        return any(self.versions(name) for name in self._versions)

    def subjects(self, prefix: Subject, *, live: bool = True, deleted: bool = False) -> Iterator[str]:
        """Return subjects that begin like this, sorted: with versions, with deleted ones only, or both."""
        for name in sorted(self._versions):
            subject = Subject.parse(name)
            if prefix.context not in (ALL_CONTEXTS, subject.context):
                continue
            if subject.name.startswith(prefix.name):
                is_live = any(not schema.is_deleted for schema in self._versions[name].values())
                if live if is_live else deleted:
                    yield name

    # Ids.

    def find_by_id(self, schema_id: int, context: str) -> StoredSchema | None:
        """Return a schema by its id in a context, deleted or not."""
        ids = self._ids.get(context)
        keys = ids.keys.get(schema_id) if ids is not None else None
        if not keys:
            return None
        subject, version = min(keys)
        return self._versions[subject][version]

    def find_id(self, fingerprint: bytes, context: str) -> int | None:
        """Return the id that a schema has in a context."""
        ids = self._ids.get(context)
        return None if ids is None else ids.by_fingerprint.get(fingerprint)

    def places(self, schema_id: int, context: str) -> list[StoredSchema]:
        """Return all versions that have an id, deleted or not."""
        ids = self._ids.get(context)
        keys = ids.keys.get(schema_id, set()) if ids is not None else set()
        return [self._versions[subject][version] for subject, version in sorted(keys)]

    def highest_id(self, context: str) -> int:
        """Return the highest id that was seen in a context."""
        ids = self._ids.get(context)
        return 0 if ids is None else ids.highest

    def id_contexts(self) -> list[str]:
        """Return the contexts that have schemas, the default one first."""
        return sorted(self._ids, key=lambda context: (context != DEFAULT_CONTEXT, context))

    # References.

    def referrers(self, key: Key, *, deleted: bool = False) -> list[StoredSchema]:
        """Return the versions that refer to a version."""
        found = [self._versions[subject][version] for subject, version in self._referrers.get(key, ())]
        return sorted(
            (schema for schema in found if deleted or not schema.is_deleted), key=lambda schema: schema.key
        )

    # Settings.

    @property
    def contexts(self) -> list[str]:
        """All contexts, the default one first."""
        return [DEFAULT_CONTEXT, *(name for name in sorted(self._contexts) if name != DEFAULT_CONTEXT)]

    def has_context(self, context: str) -> bool:
        """Say whether a context was made known."""
        return context == DEFAULT_CONTEXT or context in self._contexts

    def config(self, subject: str | None) -> Json | None:
        """Return the config of a subject, of a context, or of all."""
        return self._configs.get(subject)

    def config_in_scope(self, subject: str | None) -> Json:
        """Return the config that holds for a subject: its own, that of its context, or that of all."""
        for scope in _scopes(subject):
            if scope in self._configs:
                return self._configs[scope]
        return {}

    def mode(self, subject: str | None) -> str | None:
        """Return the mode of a subject, of a context, or of all."""
        return self._modes.get(subject)

    def mode_in_scope(self, subject: str | None) -> str | None:
        """Return the mode that holds for a subject."""
        return next((self._modes[scope] for scope in _scopes(subject) if scope in self._modes), None)

    def modes_within(self, context: Subject) -> list[str]:
        """Return the subjects of a context that have a mode of their own."""
        return sorted(
            name
            for name in self._modes
            if name is not None and _is_within(name, context) and name != str(context)
        )

    def aliases(self) -> dict[str, str]:
        """Return the subjects that stand for others."""
        return {
            name: config["alias"] for name, config in self._configs.items() if name and config.get("alias")
        }


def _put(where: dict[str | None, Json] | dict[str | None, str], key: str | None, value: object) -> None:
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value  # type: ignore[assignment] # the caller passes what belongs there


def _scopes(subject: str | None) -> Iterator[str | None]:
    yield subject
    if subject is not None:
        yield Subject.parse(subject).prefix or None
    yield f":{GLOBAL_CONTEXT}:"


def _is_within(subject: str, context: Subject | None) -> bool:
    if context is None or context.context == GLOBAL_CONTEXT:
        return True
    if not context.is_context:
        return subject == str(context)
    return context_of(subject) == context.context
