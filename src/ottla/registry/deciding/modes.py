"""Modes: what may be done with a subject, a context, or the whole registry."""

from enum import StrEnum
from typing import Any, Final

from ottla.registry.deciding.decision import Decision
from ottla.registry.errors import invalid_mode, not_permitted, reference_exists, subject_not_found
from ottla.schemas.stored.records import Record, clear_subject_record, mode_record, schema_tombstone
from ottla.schemas.stored.state import State
from ottla.schemas.stored.subjects import ALL_CONTEXTS, GLOBAL_CONTEXT, Subject, prefix_of
from ottla.schemas.stored.values import Json


class Mode(StrEnum):
    """What may be done."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_import(self) -> bool:
        """Say whether schemas come with their ids, from another registry."""
        return self in (Mode.IMPORT, Mode.FORWARD)


DEFAULT_MODE: Final = Mode.READWRITE
_READ_ONLY: Final = (Mode.READONLY, Mode.READONLY_OVERRIDE)


def mode_in_scope(state: State, subject: str | None) -> Mode:
    """Return the mode that holds for a subject."""
    if state.mode(None) == Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    found = state.mode_in_scope(subject)
    return DEFAULT_MODE if found is None else Mode(found)


def check_writable(state: State, subject: str | None) -> None:
    """Refuse a change where nothing may be changed."""
    if mode_in_scope(state, subject) in _READ_ONLY:
        raise not_permitted(f"{_named(subject)} is in read-only mode")


def check_may_register(state: State, subject: str, has_id: bool) -> None:
    """Refuse a new schema where the mode does not allow it."""
    check_writable(state, subject)
    mode = mode_in_scope(state, subject)
    if has_id and not mode.is_import:
        raise not_permitted(f"{_named(subject)} is not in import mode")
    if not has_id and mode is not Mode.READWRITE:
        raise not_permitted(f"{_named(subject)} is not in read-write mode")


def _named(subject: str | None) -> str:
    return f"Subject {subject} in context {'' if subject is None else prefix_of(subject)}"


def decide_set_mode(state: State, subject: str | None, body: Json, *, is_forced: bool) -> Decision[Json]:
    """Decide what setting a mode changes."""
    wanted = _wanted_mode(body, subject)
    records: list[Record] = []
    is_new_import = wanted is Mode.IMPORT and mode_in_scope(state, subject) is not Mode.IMPORT
    if is_new_import and not is_forced:
        if state.has_any_subject() if subject is None else state.has_subject(subject):
            raise not_permitted("Cannot import since found existing subjects")
        records += _forget_deleted(state, subject)
        records.append(clear_subject_record(subject))
    records.append(mode_record(subject, wanted))
    return Decision(body, records)


def _wanted_mode(body: Json, subject: str | None) -> Mode | None:
    named: Any = body.get("mode", "")
    if named is None:
        return None
    try:
        mode = Mode(str(named).upper())
    except ValueError:
        raise invalid_mode() from None
    is_global = subject is None or Subject.parse(subject) == Subject(GLOBAL_CONTEXT, "")
    if mode is Mode.FORWARD and not is_global:
        raise invalid_mode("Forward mode only supported on global level")
    return mode


def _forget_deleted(state: State, subject: str | None) -> list[Record]:
    within = Subject(ALL_CONTEXTS, "") if subject is None else Subject.parse(subject)
    is_one = subject is not None and not within.is_context
    names = [str(within)] if is_one else list(state.subjects(within, deleted=True))
    schemas = [schema for name in names for schema in state.versions(name, deleted=True)]
    for schema in schemas:
        if state.referrers(schema.key, deleted=True):
            raise reference_exists(*schema.key)
    return [schema_tombstone(*schema.key) for schema in schemas]


def decide_delete_mode(state: State, subject: str | None, *, is_recursive: bool) -> Decision[Json]:
    """Decide what deleting a mode changes. The answer is the mode there was."""
    old = state.mode(subject)
    if old is None:
        if subject is None:
            return Decision({"mode": DEFAULT_MODE})
        raise subject_not_found(subject)
    records = [mode_record(subject, None)]
    if is_recursive and subject is not None and Subject.parse(subject).is_context:
        records += [mode_record(name, None) for name in state.modes_within(Subject.parse(subject))]
    return Decision({"mode": old}, records)
