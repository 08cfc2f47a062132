"""Deleting: first softly, so that readers of old records still find schemas, and then for good."""

from dataclasses import replace

from ottla.registry.deciding.decision import Decision
from ottla.registry.deciding.modes import check_writable
from ottla.registry.errors import (
    context_not_empty,
    reference_exists,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from ottla.schemas.stored.records import (
    Record,
    config_record,
    context_record,
    delete_subject_record,
    mode_record,
    schema_record,
    schema_tombstone,
)
from ottla.schemas.stored.state import State
from ottla.schemas.stored.subjects import Subject, context_of
from ottla.schemas.stored.values import StoredSchema


def decide_delete_version(state: State, subject: str, version: int, *, permanent: bool) -> Decision[int]:
    """Decide what deleting a version changes. -1 is the latest."""
    schema = _find(state, subject, version, permanent=permanent)
    check_writable(state, subject)
    if state.referrers(schema.key, deleted=permanent):
        raise reference_exists(*schema.key)
    if not permanent:
        return Decision(schema.version, [schema_record(replace(schema, is_deleted=True))])
    if not schema.is_deleted:
        raise version_not_soft_deleted(subject, schema.version)
    records = [schema_tombstone(*schema.key)]
    if len(state.versions(subject, deleted=True)) == 1:
        records += _forget_settings(state, subject)
    return Decision(schema.version, records)


def _find(state: State, subject: str, version: int, *, permanent: bool) -> StoredSchema:
    live = state.find(subject, version)
    found = live or state.find(subject, version, deleted=True)
    if found is not None and live is None and not permanent:
        raise version_soft_deleted(subject, version)
    if found is None:
        if not state.has_subject(subject, deleted=True):
            raise subject_not_found(subject)
        raise version_not_found(version)
    return found


def decide_delete_subject(state: State, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """Decide what deleting a subject changes. The answer is the versions that are deleted."""
    if not state.has_subject(subject, deleted=True):
        raise subject_not_found(subject)
    if not permanent and not state.has_subject(subject):
        raise subject_soft_deleted(subject)
    check_writable(state, subject)
    versions = state.versions(subject, deleted=permanent)
    for schema in versions:
        others = [item for item in state.referrers(schema.key, deleted=permanent) if item.subject != subject]
        if others:
            raise reference_exists(*schema.key)
        if permanent and not schema.is_deleted:
            raise subject_not_soft_deleted(subject)
    numbers = [schema.version for schema in versions]
    if not permanent:
        return Decision(numbers, [delete_subject_record(subject, numbers[-1])])
    # The highest first: a version may refer to an earlier one of its subject.
    records = [schema_tombstone(subject, number) for number in reversed(numbers)]
    return Decision(numbers, records + _forget_settings(state, subject))


def _forget_settings(state: State, subject: str) -> list[Record]:
    records = []
    if state.mode(subject) is not None:
        records.append(mode_record(subject, None))
    if state.config(subject) is not None:
        records.append(config_record(subject, None))
    return records


def decide_delete_context(state: State, context: str) -> Decision[None]:
    """Decide what deleting a context changes. There must be nothing in it."""
    subject = Subject.parse(context)
    if next(state.subjects(Subject(subject.context, ""), deleted=True), None) is not None:
        raise context_not_empty(context)
    if not state.has_context(subject.context):
        return Decision(None)
    return Decision(None, [context_record(context_of(context), is_deleted=True)])
