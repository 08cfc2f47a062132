"""Registering schemas, looking them up, and checking whether they fit.

Equal schemas have the same id in all subjects of a context. Rule sets are checked and not stored, as in
Confluent's community edition.
"""

from dataclasses import replace
from typing import Final

from ottla.registry.deciding.configs import level_in_scope
from ottla.registry.deciding.decision import Decision
from ottla.registry.deciding.modes import Mode, check_may_register, mode_in_scope
from ottla.registry.deciding.requests import SchemaRequest
from ottla.registry.errors import incompatible, invalid_schema, not_permitted
from ottla.registry.parsing import CheckedSchema, Parser, unusable
from ottla.schemas.compatibility import Level
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.stored.records import Record, context_record, schema_record, schema_tombstone
from ottla.schemas.stored.state import State
from ottla.schemas.stored.subjects import context_of, prefix_of
from ottla.schemas.stored.values import Json, StoredSchema, merge_metadata

VERSION_PROPERTY: Final = "confluent:version"
RESERVED_PROPERTY: Final = "confluent:reserved"


class Registration:
    """Decides about schemas. `state` is what the topic says, `parser` parses what is in it."""

    def __init__(self, state: State, parser: Parser) -> None:
        self._state = state
        self._parser = parser

    def parse(self, subject: str, request: SchemaRequest, *, normalize: bool, is_new: bool) -> CheckedSchema:
        """Parse and check a schema as the settings of its subject demand. Raises RegistryError."""
        parsed = self._parser.parse(subject, request.schema_type, request.text, request.references)
        is_import = mode_in_scope(self._state, subject).is_import
        try:
            # What a parser accepts and a library would not is refused only for new schemas.
            checks_defaults = is_new and self._config(subject).get("validateNewSchemas") is not False
            if not is_import and (parsed.schema_type != "AVRO" or checks_defaults):
                parsed.check()
            return parsed.normalized() if normalize or self._config(subject).get("normalize") else parsed
        except InvalidSchema as error:
            raise unusable(request.schema_type, request.text, request.references, error) from error

    def find(
        self, subject: str, request: SchemaRequest, *, normalize: bool, deleted: bool = False
    ) -> StoredSchema | None:
        """Return the version of a subject that has this schema."""
        parsed = self.parse(subject, request, normalize=normalize, is_new=False)
        return self._find(subject, parsed, request.metadata, deleted=deleted)

    def _find(
        self, subject: str, parsed: CheckedSchema, metadata: Json | None, *, deleted: bool = False
    ) -> StoredSchema | None:
        wanted = _as_stored(subject, parsed, metadata).fingerprint
        versions = list(reversed(self._state.versions(subject, deleted=deleted)))
        same = next((schema for schema in versions if schema.fingerprint == wanted), None)
        return same or next((item for item in versions if self._is_same(parsed, metadata, item)), None)

    def _is_same(self, parsed: CheckedSchema, metadata: Json | None, schema: StoredSchema) -> bool:
        """Say whether a schema is this one but for its version number, or with its references written out."""
        if parsed.schema_type != schema.schema_type or _bare(metadata) != _bare(schema.metadata):
            return False
        if parsed.references == schema.references:
            return parsed.text == schema.text
        if parsed.references or parsed.schema_type != "AVRO":
            return False
        return parsed.text == self._parser.stored(schema).formatted("resolved")

    def decide_register(
        self, subject: str, request: SchemaRequest, *, normalize: bool
    ) -> Decision[StoredSchema]:
        """Decide what registering a schema changes. The answer is the version that has it."""
        if request.has_text and request.version <= 0:
            known = self.find(subject, request, normalize=normalize)
            is_latest = known is not None and known == self._state.find(subject, -1)
            if known is not None and request.id in (-1, known.id) and (request.version == 0 or is_latest):
                return Decision(known)
        check_may_register(self._state, subject, request.id >= 0)
        mode = mode_in_scope(self._state, subject)
        if not mode.is_import:
            request = self._completed(subject, request)
        parsed = self.parse(subject, request, normalize=normalize, is_new=request.id < 0)
        new = _as_stored(subject, parsed, request.metadata)
        if request.version == 0:
            known = self._find(subject, parsed, request.metadata)
            if known is not None and request.id in (-1, known.id):
                return Decision(known)
        if not mode.is_import:
            self._check_compatible(subject, parsed, request.metadata)
        new = replace(new, version=self._version(subject, request, mode), id=self._id(new, request))
        return Decision(new, self._records(new))

    def _completed(self, subject: str, request: SchemaRequest) -> SchemaRequest:
        """Take from the latest version and from the config what the request does not say."""
        previous = self._state.find(subject, -1)
        if not request.has_text:
            if previous is None:
                raise invalid_schema("Empty schema")
            request = replace(
                request,
                text=previous.text,
                schema_type=previous.schema_type,
                references=previous.references,
            )
        metadata = request.metadata
        if metadata is None and previous is not None:
            metadata = previous.metadata
        config = self._config(subject)
        metadata = merge_metadata(config.get("defaultMetadata"), metadata)
        metadata = merge_metadata(metadata, config.get("overrideMetadata"))
        if request.version != 0 or VERSION_PROPERTY in (metadata or {}).get("properties", {}):
            number = str(self._state.next_version(subject))
            metadata = merge_metadata(metadata, {"properties": {VERSION_PROPERTY: number}})
        return replace(request, metadata=metadata)

    def _version(self, subject: str, request: SchemaRequest, mode: Mode) -> int:
        following = self._state.next_version(subject)
        if request.version <= 0:
            return following
        if request.version != following and not mode.is_import:
            raise invalid_schema("Version is not one more than previous version")
        return request.version

    def _id(self, new: StoredSchema, request: SchemaRequest) -> int:
        context = context_of(new.subject)
        known = self._state.find_id(new.fingerprint, context)
        if known is not None and request.id in (-1, known):
            return known
        if request.id < 0:
            return self._state.highest_id(context) + 1
        taken = self._state.find_by_id(request.id, context)
        if taken is not None and taken.fingerprint != new.fingerprint:
            raise not_permitted(
                f"Overwrite new schema with id {request.id} in context {prefix_of(new.subject)} is not "
                "permitted."
            )
        return request.id

    def _records(self, new: StoredSchema) -> list[Record]:
        records = []
        context = context_of(new.subject)
        if not self._state.has_context(context):
            records.append(context_record(context))
        # A schema that was deleted and comes back leaves its old number behind.
        records += [
            schema_tombstone(*old.key)
            for old in reversed(self._state.versions(new.subject, deleted=True))
            if old.is_deleted
            and old.id == new.id
            and old.version < new.version
            and not self._state.referrers(old.key, deleted=True)
        ]
        return [*records, schema_record(new)]

    # Compatibility.

    def incompatibilities(
        self, subject: str, request: SchemaRequest, versions: list[StoredSchema], *, normalize: bool
    ) -> list[str]:
        """Return why a schema does not fit these versions, by the settings of the subject."""
        if not request.has_text:
            raise invalid_schema("Empty schema")
        parsed = self.parse(subject, request, normalize=normalize, is_new=True)
        return self._compare(subject, parsed, request.metadata, versions)

    def _check_compatible(self, subject: str, parsed: CheckedSchema, metadata: Json | None) -> None:
        why = self._compare(subject, parsed, metadata, self._state.versions(subject))
        if why:
            raise incompatible(subject, why)

    def _compare(
        self, subject: str, parsed: CheckedSchema, metadata: Json | None, versions: list[StoredSchema]
    ) -> list[str]:
        config = self._config(subject)
        level = level_in_scope(self._state, subject)
        is_validating = config.get("validateFields") is True
        why = _reserved_fields(parsed, metadata, versions) if is_validating else []
        group = config.get("compatibilityGroup")
        if group is not None:
            mine = _property(metadata, group)
            versions = [schema for schema in versions if _property(schema.metadata, group) == mine]
        why += self._check(level, parsed, versions, is_lenient=config.get("compatibilityPolicy") == "LENIENT")
        if why:
            why.append(f"{{validateFields: '{str(is_validating).lower()}', compatibility: '{level}'}}")
        return why

    def _check(
        self, level: Level, parsed: CheckedSchema, versions: list[StoredSchema], *, is_lenient: bool
    ) -> list[str]:
        if level is Level.NONE or not versions:
            return []
        try:
            # Only those that are compared: the last one, or all of them.
            compared = versions if level.is_transitive else versions[-1:]
            sources = tuple((schema.version, self._parser.source(schema)) for schema in compared)
            return parsed.misfits(level, sources, is_lenient=is_lenient)
        except InvalidSchema as error:
            return [f"Unexpected exception during compatibility check: {error}"]

    def _config(self, subject: str) -> Json:
        return self._state.config_in_scope(subject)


def _as_stored(subject: str, parsed: CheckedSchema, metadata: Json | None) -> StoredSchema:
    return StoredSchema(
        subject=subject,
        version=0,
        id=-1,
        schema_type=parsed.schema_type,
        text=parsed.text,
        references=parsed.references,
        metadata=metadata,
    )


def _property(metadata: Json | None, name: str) -> str | None:
    return ((metadata or {}).get("properties") or {}).get(name)


def _bare(metadata: Json | None) -> Json:
    """Return metadata without the number of the version."""
    properties = {
        name: value
        for name, value in ((metadata or {}).get("properties") or {}).items()
        if name != VERSION_PROPERTY
    }
    rest = {name: value for name, value in (metadata or {}).items() if name != "properties"}
    return {**rest, "properties": properties} if properties else rest


def _reserved_fields(parsed: CheckedSchema, metadata: Json | None, versions: list[StoredSchema]) -> list[str]:
    """Return what is wrong with the names of fields that must not be used."""
    reserved = _reserved(metadata)
    before = _reserved(versions[-1].metadata) if versions else set()
    why = [
        f"{{errorType:'RESERVED_FIELD_REMOVED', description:'The field {name} is reserved in the old schema "
        "and no longer in the new schema'}"
        for name in sorted(before - reserved)
    ]
    return why + [
        f"{{errorType:'FIELD_CONFLICTS_WITH_RESERVED_FIELD', description:'The new schema has the field "
        f"{name}, which is reserved'}}"
        for name in sorted(reserved)
        if parsed.has_top_level_field(name)
    ]


def _reserved(metadata: Json | None) -> set[str]:
    named = _property(metadata, RESERVED_PROPERTY) or ""
    return {name.strip() for name in named.split(",") if name.strip()}
