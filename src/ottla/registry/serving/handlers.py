"""What each route does. A handler returns the answer, or a change to be written."""

from ottla import __version__
from ottla.registry.deciding.configs import (
    DEFAULT_LEVEL,
    decide_delete_config,
    decide_set_config,
    shown,
)
from ottla.registry.deciding.deletion import (
    decide_delete_context,
    decide_delete_subject,
    decide_delete_version,
)
from ottla.registry.deciding.modes import (
    DEFAULT_MODE,
    decide_delete_mode,
    decide_set_mode,
    mode_in_scope,
)
from ottla.registry.deciding.requests import read_request
from ottla.registry.errors import (
    RegistryError,
    invalid_subject,
    no_subject_config,
    no_subject_mode,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from ottla.registry.serving import bodies
from ottla.registry.serving.call import ID_DIGITS_MAX, LATEST, Call, Change, NoContent, Text
from ottla.schemas.parsing import SCHEMA_TYPES
from ottla.schemas.stored.subjects import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    WILDCARD,
    Subject,
    context_of,
    context_prefix,
    is_valid,
)
from ottla.schemas.stored.values import Json, StoredSchema

# The service.


def get_root(_call: Call) -> Json:
    """Answer that the registry is there."""
    return {}


def get_health(call: Call) -> Json:
    """Say that the registry answers, and which instance writes."""
    registry = call.registry
    leader = None if registry.leader is None else registry.leader.url
    return {"status": "healthy", "leader": leader, "is_leader": registry.is_leader}


def get_types(_call: Call) -> list[str]:
    """List the types of schemas."""
    return list(SCHEMA_TYPES)


def get_metadata_id(call: Call) -> Json:
    """Name the cluster and the group of the registry."""
    registry = call.registry
    clusters = {
        "kafka-cluster": registry.cluster_id,
        "schema-registry-cluster": registry.settings.group_id,
    }
    return {"scope": {"path": [], "clusters": clusters}}


def get_metadata_version(_call: Call) -> Json:
    """Tell the version of the registry."""
    return {"version": f"ottla-{__version__}", "commitId": ""}


def refuse_exporters(_call: Call) -> Json:
    """Refuse exporters: they are part of Confluent's commercial edition."""
    raise RegistryError(
        40400, "Exporters are not supported: read the topic of the registry to copy schemas elsewhere"
    )


# Schemas.


def _text(call: Call, schema: StoredSchema) -> str:
    wanted = call.text("format").strip()
    return call.registry.parser.stored(schema).formatted(wanted) if wanted else schema.text


def _find_by_id(call: Call) -> StoredSchema | None:
    """Find a schema by the id of the path: in the context of the subject, or else in any that has it."""
    text = call.segment("id")
    if not text.isascii() or not text.isdigit() or len(text) > ID_DIGITS_MAX:
        raise RegistryError(404, "HTTP 404 Not Found")
    schema_id, state = int(text), call.registry.state
    subject = call.text("subject")
    parsed = Subject.parse(call.unaliased(subject) if subject else "")
    contexts = [parsed.context]
    if parsed.context == DEFAULT_CONTEXT and parsed.name:
        contexts += [name for name in state.id_contexts() if name != DEFAULT_CONTEXT]
    for context in contexts:
        places = state.places(schema_id, context)
        # A subject may be one of several that have the schema.
        same = [
            schema for schema in places if parsed.name and Subject.parse(schema.subject).name == parsed.name
        ]
        if same:
            return same[0]
    return next((found for name in contexts if (found := state.find_by_id(schema_id, name))), None)


def get_schemas(call: Call) -> list[Json]:
    """List versions of all subjects that begin with a prefix."""
    prefix = Subject.parse(call.text("subjectPrefix", WILDCARD))
    deleted = call.flag("deleted")
    listed = []
    for subject in call.registry.state.subjects(prefix, deleted=deleted):
        versions = call.registry.state.versions(subject, deleted=deleted)
        listed += versions[-1:] if call.flag("latestOnly") else versions
    rules = call.text("ruleType")
    if rules:
        listed = [schema for schema in listed if schema.rule_set is not None]
    aliases = call.registry.state.aliases() if call.flag("aliases") else {}
    answers = [bodies.version(schema, schema.text) for schema in call.page(listed)]
    for answer in answers:
        named = [name for name, target in aliases.items() if target == answer["subject"]]
        if named:
            answer["aliases"] = named
    return answers


def get_schema_by_id(call: Call) -> Json:
    """Return a schema by its id."""
    schema = _find_by_id(call)
    if schema is None:
        raise schema_not_found(call.segment("id"))
    highest = call.registry.state.highest_id(context_of(schema.subject)) if call.flag("fetchMaxId") else None
    qualified = call.text("referenceFormat") == "qualified"
    return bodies.by_id(schema, _text(call, schema), qualified=qualified, highest=highest)


def get_schema_text_by_id(call: Call) -> Text:
    """Return the text of a schema by its id."""
    schema = _find_by_id(call)
    if schema is None:
        raise schema_not_found(call.segment("id"))
    return Text(_text(call, schema))


def _places(call: Call) -> list[StoredSchema]:
    schema = _find_by_id(call)
    if schema is None:
        raise schema_not_found()
    places = call.registry.state.places(schema.id, context_of(schema.subject))
    return [place for place in places if call.flag("deleted") or not place.is_deleted]


def get_subjects_of_id(call: Call) -> list[str]:
    """List the subjects that have a schema."""
    return call.page(list(dict.fromkeys(schema.subject for schema in _places(call))))


def get_versions_of_id(call: Call) -> list[Json]:
    """List the versions that have a schema."""
    return call.page([{"subject": place.subject, "version": place.version} for place in _places(call)])


def _find_by_guid(call: Call) -> list[StoredSchema]:
    guid, state = call.segment("guid").lower(), call.registry.state
    found = []
    for context in state.id_contexts():
        for subject in state.subjects(Subject(context, ""), deleted=True):
            found += [item for item in state.versions(subject, deleted=True) if item.guid == guid]
    return found


def get_schema_by_guid(call: Call) -> Json:
    """Return a schema by its guid, which is the same in every registry."""
    schema = next(iter(_find_by_guid(call)), None)
    if schema is None:
        raise schema_not_found(call.segment("guid"))
    return bodies.by_id(schema, _text(call, schema))


def get_ids_of_guid(call: Call) -> list[Json]:
    """List the ids that a schema has, one in each context at most."""
    ids = {context_of(schema.subject): schema.id for schema in _find_by_guid(call)}
    return [{"context": context, "id": number} for context, number in ids.items()]


# Subjects.


def get_subjects(call: Call) -> list[str]:
    """List subjects."""
    prefix = Subject.parse(call.text("subjectPrefix", WILDCARD))
    only_deleted = call.flag("deletedOnly")
    deleted = only_deleted or call.flag("deleted")
    return call.page(list(call.registry.state.subjects(prefix, live=not only_deleted, deleted=deleted)))


def look_up_schema(call: Call) -> Json:
    """Find the version of a subject that has a schema."""
    request = read_request(call.body("lookUpSchemaUnderSubject"))
    subject, deleted = call.target, call.flag("deleted")
    registration = call.registry.registration
    found = None
    if request.has_text:
        normalize = call.flag("normalize")
        found = registration.find(subject, request, normalize=normalize, deleted=deleted)
        if found is None and context_of(subject) == DEFAULT_CONTEXT:
            for context in call.registry.state.contexts[1:]:
                other = str(Subject(context, subject))
                if call.registry.state.has_subject(other, deleted=deleted):
                    found = found or registration.find(other, request, normalize=normalize, deleted=deleted)
    if found is None:
        is_known = call.registry.state.has_subject(subject, deleted=deleted)
        raise schema_not_found() if is_known else subject_not_found(subject)
    return bodies.found(found, _text(call, found))


def delete_subject(call: Call) -> Change[list[int]]:
    """Delete a subject."""
    subject, permanent = call.target, call.flag("permanent")
    return Change(lambda: decide_delete_subject(call.state, subject, permanent=permanent))


def get_latest_with_metadata(call: Call) -> Json:
    """Return the latest version whose metadata has certain properties."""
    subject, deleted = call.target, call.flag("deleted")
    wanted = dict(zip(call.texts("key"), call.texts("value"), strict=False))
    for schema in reversed(call.registry.state.versions(subject, deleted=deleted)):
        properties = (schema.metadata or {}).get("properties")
        if properties is not None and wanted.items() <= properties.items():
            return bodies.version(schema, _text(call, schema))
    is_known = call.registry.state.has_subject(subject, deleted=deleted)
    raise schema_not_found() if is_known else subject_not_found(subject)


def get_versions(call: Call) -> list[int]:
    """List the versions of a subject."""
    subject = call.target
    only_deleted, as_negative = call.flag("deletedOnly"), call.flag("deletedAsNegative")
    deleted = call.flag("deleted") or only_deleted
    if not call.registry.state.has_subject(subject, deleted=deleted):
        raise subject_not_found(subject)
    versions = call.registry.state.versions(subject, deleted=deleted or as_negative)
    if as_negative:
        return call.page([-item.version if item.is_deleted else item.version for item in versions])
    return call.page([item.version for item in versions if item.is_deleted or not only_deleted])


def register_schema(call: Call) -> Json | Change[StoredSchema]:
    """Register a schema under a subject."""
    body = call.body("register")
    request = read_request(body)
    name = call.segment("subject")
    if not is_valid(name):
        raise invalid_subject(name)
    subject, normalize = call.target, call.flag("normalize")
    registration = call.registry.registration
    if request.has_text and request.version == 0:
        # Most registrations are of schemas that are known. Any instance can answer them.
        known = registration.find(subject, request, normalize=normalize)
        if known is not None and request.id in (-1, known.id):
            return bodies.registered(known, _text(call, known))
    return Change(
        lambda: registration.decide_register(subject, request, normalize=normalize),
        lambda schema: bodies.registered(schema, _text(call, schema)),
    )


def _find_version(call: Call, *, deleted: bool) -> StoredSchema:
    number, subject, state = call.version, call.target, call.registry.state
    found = state.find(subject, number, deleted=deleted and number != LATEST)
    if found is None and context_of(subject) == DEFAULT_CONTEXT:
        for context in state.contexts[1:]:
            found = found or state.find(str(Subject(context, subject)), number, deleted=deleted)
    if found is None:
        if not state.has_subject(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise version_not_found(number)
    return found


def get_version(call: Call) -> Json:
    """Return a version of a subject."""
    schema = _find_version(call, deleted=call.flag("deleted"))
    return bodies.version(schema, _text(call, schema), qualified=call.text("referenceFormat") == "qualified")


def get_version_text(call: Call) -> Text:
    """Return the text of a version."""
    return Text(_text(call, _find_version(call, deleted=call.flag("deleted"))))


def get_referenced_by(call: Call) -> list[int]:
    """List the ids of the schemas that refer to a version."""
    schema = _find_version(call, deleted=True)
    referrers = call.registry.state.referrers(schema.key, deleted=call.flag("deleted"))
    return call.page(list(dict.fromkeys(item.id for item in referrers)))


def delete_version(call: Call) -> Change[int]:
    """Delete a version."""
    subject, number, permanent = call.target, call.version, call.flag("permanent")
    return Change(lambda: decide_delete_version(call.state, subject, number, permanent=permanent))


# Compatibility.


def _verdict(call: Call, operation: str, versions: list[StoredSchema]) -> Json:
    request = read_request(call.body(operation))
    why = call.registry.registration.incompatibilities(
        call.target, request, versions, normalize=call.flag("normalize")
    )
    verdict: Json = {"is_compatible": not why}
    return {**verdict, "messages": why} if call.flag("verbose") else verdict


def check_version(call: Call) -> Json:
    """Check whether a schema is compatible with one version."""
    number, state = call.version, call.registry.state
    found = state.find(call.target, number)
    if found is None and number != LATEST:
        raise version_not_found(number)
    return _verdict(call, "testCompatibilityBySubjectName", [found] if found else [])


def check_subject(call: Call) -> Json:
    """Check whether a schema could be registered under a subject."""
    return _verdict(call, "testCompatibilityForSubject", call.registry.state.versions(call.target))


# Settings.


def get_config(call: Call) -> Json:
    """Return the config of a subject, of a context or of all."""
    state, scope = call.registry.state, call.scope
    if call.flag("defaultToGlobal"):
        return shown(state.config_in_scope(scope))
    config = state.config(scope)
    if config is None and scope is not None and context_of(scope) != GLOBAL_CONTEXT:
        raise no_subject_config(scope)
    return shown(config or {"compatibilityLevel": DEFAULT_LEVEL})


def set_config(call: Call) -> Change[Json]:
    """Set the config of a subject, of a context or of all."""
    scope = call.scope
    body = call.body("updateTopLevelConfig" if scope is None else "updateSubjectLevelConfig")
    if scope is not None and not is_valid(scope, allows_context=True):
        raise invalid_subject(scope)
    return Change(lambda: decide_set_config(call.state, scope, body))


def delete_config(call: Call) -> Change[Json]:
    """Delete the config of a subject, of a context or of all."""
    scope = call.scope
    return Change(lambda: decide_delete_config(call.state, scope))


def get_mode(call: Call) -> Json:
    """Return the mode of a subject, of a context or of all."""
    state, scope = call.registry.state, call.scope
    if call.flag("defaultToGlobal"):
        return {"mode": mode_in_scope(state, scope)}
    mode = state.mode(scope)
    if mode is None and scope is not None and context_of(scope) != GLOBAL_CONTEXT:
        raise no_subject_mode(scope)
    return {"mode": mode or DEFAULT_MODE}


def set_mode(call: Call) -> Change[Json]:
    """Set the mode of a subject, of a context or of all."""
    scope, is_forced = call.scope, call.flag("force")
    body = call.body("updateTopLevelMode" if scope is None else "updateMode")
    if scope is not None and not is_valid(scope, allows_context=True):
        raise invalid_subject(scope)
    return Change(lambda: decide_set_mode(call.state, scope, body, is_forced=is_forced))


def delete_mode(call: Call) -> Change[Json]:
    """Delete the mode of a subject, of a context or of all."""
    scope, is_recursive = call.scope, call.flag("recursive")
    return Change(lambda: decide_delete_mode(call.state, scope, is_recursive=is_recursive))


# Contexts.


def get_contexts(call: Call) -> list[str]:
    """List the contexts."""
    prefix = call.text("contextPrefix")
    return call.page([name for name in call.registry.state.contexts if name.startswith(prefix)])


def delete_context(call: Call) -> Change[None]:
    """Delete a context that has no subjects."""
    context = context_prefix(call.segment("context"))
    return Change(lambda: decide_delete_context(call.state, context), lambda _: NoContent())
