"""Configs: the compatibility level and all else that can be set for a subject, a context or all."""

from typing import Any, Final

from ottla.registry.deciding.decision import Decision
from ottla.registry.deciding.modes import check_writable
from ottla.registry.errors import RegistryError, invalid_level, subject_not_found
from ottla.schemas.compatibility import Level
from ottla.schemas.stored.records import CONFIG_FIELDS, config_record
from ottla.schemas.stored.state import State
from ottla.schemas.stored.values import Json, clean_metadata

DEFAULT_LEVEL: Final = Level.BACKWARD
_POLICIES: Final = ("STRICT", "LENIENT")
_BOOLEANS: Final = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
# The community edition stores no rules. See `registration.py`.
_RULES: Final = ("defaultRuleSet", "overrideRuleSet")


def level_in_scope(state: State, subject: str | None) -> Level:
    """Return the compatibility level that holds for a subject."""
    return Level(state.config_in_scope(subject).get("compatibilityLevel", DEFAULT_LEVEL))


def shown(config: Json) -> Json:
    """Return a config as it is answered: with a level, also if none was set."""
    named = {"compatibilityLevel": DEFAULT_LEVEL, **config}
    return {name: named[name] for name in CONFIG_FIELDS if name in named}


def decide_set_config(state: State, subject: str | None, body: Json) -> Decision[Json]:
    """Decide what setting configs changes. What is not named stays, and null removes."""
    changes = _read(body)
    check_writable(state, subject)
    config = dict(state.config(subject) or {})
    for name, value in changes.items():
        if value is None:
            config.pop(name, None)
        else:
            config[name] = value
    echoed = {
        "compatibility" if name == "compatibilityLevel" else name: value for name, value in config.items()
    }
    return Decision(echoed, [config_record(subject, config)])


def _read(body: Json) -> Json:
    changes: Json = {}
    for name in CONFIG_FIELDS:
        given = "compatibility" if name == "compatibilityLevel" and "compatibility" in body else name
        if given in body and name not in _RULES:
            changes[name] = _value(name, body[given])
    return changes


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "compatibilityLevel":
        if not isinstance(value, str) or value.upper() not in Level.__members__:
            raise invalid_level()
        return value.upper()
    if name == "compatibilityPolicy":
        if not isinstance(value, str) or value.upper() not in _POLICIES:
            raise RegistryError(42212, "Invalid compatibility policy. Valid values are strict and lenient")
        return value.upper()
    if name in _BOOLEANS:
        if not isinstance(value, bool):
            raise RegistryError(400, f"Cannot deserialize {name}: it is true or false")
        return value
    if name.endswith("Metadata"):
        if not isinstance(value, dict):
            raise RegistryError(400, f"Cannot deserialize {name}: it is an object")
        return clean_metadata(value)
    if not isinstance(value, str):
        raise RegistryError(400, f"Cannot deserialize {name}: it is a text")
    return value


def decide_delete_config(state: State, subject: str | None) -> Decision[Json]:
    """Decide what deleting a config changes. The answer is the config there was."""
    old = state.config(subject)
    if old is None and subject is not None:
        raise subject_not_found(subject)
    check_writable(state, subject)
    records = [config_record(subject, None)] if old is not None else []
    return Decision(shown(old or {}), records)
