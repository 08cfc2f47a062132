"""What the records of the config topic add up to. Only `replay` changes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ottla.connect.configs.keys import is_usable_name
from ottla.connect.store import records
from ottla.connect.store.records import UnreadableRecord, decode_json

STARTED: Final = "STARTED"
PAUSED: Final = "PAUSED"
STOPPED: Final = "STOPPED"
_STATES: Final = (STARTED, PAUSED, STOPPED)


class Restart(NamedTuple):
    """A wish to restart a connector. It is an event, and not kept."""

    connector: str
    include_tasks: bool
    only_failed: bool


class SessionKey(NamedTuple):
    """The key with which workers sign requests to each other."""

    key: str
    algorithm: str
    created_ms: int


@dataclass
class ConfigState:
    """Connectors, their tasks, and what else workers agree on."""

    connectors: dict[str, dict[str, str]] = field(default_factory=dict)
    tasks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """The committed configurations of tasks."""
    target_states: dict[str, str] = field(default_factory=dict)
    session_key: SessionKey | None = None
    previous_session_key: SessionKey | None = None
    """It still counts, since others learn of the new one a moment later."""
    loggers: dict[str, str] = field(default_factory=dict)
    deferred: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    """Configurations of tasks whose commit record has not come yet."""
    generations: dict[str, int] = field(default_factory=dict)
    """How often the tasks of a connector were committed, as far as this worker has read."""
    fenced_tasks: dict[str, int] = field(default_factory=dict)
    """How many tasks of a source could run since its earlier ones were fenced. It outlives the connector: one
    of the same name fences these tasks."""
    unfenced: set[str] = field(default_factory=set)
    """Connectors with tasks that may start only when the earlier ones are fenced."""

    def target_state(self, name: str) -> str:
        """Say whether a connector is to run."""
        return self.target_states.get(name, STARTED)

    def replay(self, key: bytes | None, value: bytes | None) -> Restart | None:
        """Apply a record. Returns what it asks for, if it is an event. Raises UnreadableRecord."""
        name, content = _text(key), decode_json(value)
        if content is not None and not isinstance(content, dict):
            raise UnreadableRecord(f"the value of {name!r} is not an object")
        if name == records.SESSION_KEY:
            self.previous_session_key, self.session_key = self.session_key, _session_key(content)
            return None
        if name.startswith(records.RESTART):
            return _restart(name.removeprefix(records.RESTART), content)
        for prefix, apply in (
            (records.FENCING, self._fenced),
            (records.TARGET_STATE, self._target_state),
            (records.LOGGER, self._logger),
            (records.CONNECTOR, self._connector),
            (records.TASK, self._task),
            (records.COMMIT, self._commit),
        ):
            if name.startswith(prefix):
                apply(name.removeprefix(prefix), content)
                return None
        raise UnreadableRecord(f"the key {name!r} is not known")

    def _fenced(self, name: str, content: Mapping[str, Any] | None) -> None:
        count = None if content is None else content.get("tasks")
        if not isinstance(count, int):
            raise UnreadableRecord(f"the record of fenced tasks of {name!r} has no number of tasks")
        self.fenced_tasks[name] = count
        self.unfenced.discard(name)

    def _connector(self, name: str, content: Mapping[str, Any] | None) -> None:
        if content is None:
            self.connectors.pop(name, None)
            self.tasks.pop(name, None)
            self.deferred.pop(name, None)
            return
        if not is_usable_name(name):
            raise UnreadableRecord(f"{name[:50]!r}... is no name of a connector")
        self.connectors[name] = _properties(name, content)

    def _task(self, name: str, content: Mapping[str, Any] | None) -> None:
        connector, dash, number = name.rpartition("-")
        if not dash or not number.isdecimal():
            raise UnreadableRecord(f"{name!r} names no task")
        if content is not None:
            self.deferred.setdefault(connector, {})[int(number)] = _properties(name, content)

    def _commit(self, name: str, content: Mapping[str, Any] | None) -> None:
        if content is None:
            return
        count = content.get("tasks")
        if not isinstance(count, int):
            raise UnreadableRecord(f"the commit of {name!r} has no number of tasks")
        known = dict(enumerate(self.tasks.get(name, []))) | self.deferred.pop(name, {})
        if name in self.connectors and all(number in known for number in range(count)):
            # Otherwise compaction has removed some: the connector is asked for its tasks again.
            self.tasks[name] = [known[number] for number in range(count)]
            self.generations[name] = self.generations.get(name, 0) + 1
            self.unfenced.add(name)

    def _target_state(self, name: str, content: Mapping[str, Any] | None) -> None:
        if content is None:
            self.target_states.pop(name, None)
            return
        state = content.get("state.v2") or content.get("state")
        if state not in _STATES:
            raise UnreadableRecord(f"the target state of {name!r} is {state!r}")
        self.target_states[name] = str(state)

    def _logger(self, name: str, content: Mapping[str, Any] | None) -> None:
        if content is not None and isinstance(content.get("level"), str):
            self.loggers[name] = content["level"]


def _text(key: bytes | None) -> str:
    try:
        return (key or b"").decode()
    except UnicodeDecodeError as error:
        raise UnreadableRecord("the key is not text") from error


def _properties(name: str, content: Mapping[str, Any]) -> dict[str, str]:
    properties = content.get("properties")
    if not isinstance(properties, dict):
        raise UnreadableRecord(f"the record of {name!r} has no properties")
    return properties


def _restart(name: str, content: Mapping[str, Any] | None) -> Restart | None:
    if content is None:
        return None
    return Restart(name, content.get("include-tasks") is True, content.get("only-failed") is True)


def _session_key(content: Mapping[str, Any] | None) -> SessionKey | None:
    if content is None:
        return None
    try:
        return SessionKey(str(content["key"]), str(content["algorithm"]), int(content["creation-timestamp"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableRecord(f"the session key cannot be read: {error!r}") from error
