"""Keys and values of the records in the three topics of a worker. The formats are those of Kafka Connect."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
TARGET_STATE: Final = "target-state-"
FENCING: Final = "tasks-fencing-"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"
SESSION_KEY: Final = "session-key"
STATUS_CONNECTOR: Final = "status-connector-"
STATUS_TASK: Final = "status-task-"
STATUS_TOPIC: Final = "status-topic-"


class StoredRecord(NamedTuple):
    """A record as it is written."""

    key: bytes
    value: bytes | None


class UnreadableRecord(ValueError):
    """A record that no worker would have written."""


def encode_json(value: Any) -> bytes:
    """Return JSON as Connect's JsonConverter writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")


def decode_json(data: bytes | None) -> Any:
    """Read a value. Raises UnreadableRecord."""
    if data is None:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecord(f"not JSON: {error}") from error


def _record(key: str, value: Mapping[str, Any] | None) -> StoredRecord:
    return StoredRecord(key.encode(), None if value is None else encode_json(value))


def connector_record(name: str, config: Mapping[str, str | None] | None) -> StoredRecord:
    """Return the record of a connector's configuration; None: it is deleted."""
    return _record(f"{CONNECTOR}{name}", None if config is None else {"properties": config})


def task_record(name: str, task: int, config: Mapping[str, str]) -> StoredRecord:
    """Return the record of a task's configuration. It counts after the commit record."""
    return _record(f"{TASK}{name}-{task}", {"properties": config})


def commit_record(name: str, tasks: int) -> StoredRecord:
    """Return the record with which the configurations of tasks begin to count."""
    return _record(f"{COMMIT}{name}", {"tasks": tasks})


def fencing_record(name: str, tasks: int) -> StoredRecord:
    """Return the record that says that all earlier tasks of a source are fenced, and how many start now."""
    return _record(f"{FENCING}{name}", {"tasks": tasks})


def target_state_record(name: str, state: str | None) -> StoredRecord:
    """Return the record that says whether a connector is to run. Old workers know no STOPPED."""
    if state is None:
        return _record(f"{TARGET_STATE}{name}", None)
    old = "PAUSED" if state == "STOPPED" else state
    return _record(f"{TARGET_STATE}{name}", {"state": old, "state.v2": state})


def restart_record(name: str, *, include_tasks: bool, only_failed: bool) -> StoredRecord:
    """Return the record that asks the workers to restart a connector."""
    return _record(f"{RESTART}{name}", {"include-tasks": include_tasks, "only-failed": only_failed})


def logger_record(namespace: str, level: str) -> StoredRecord:
    """Return the record that sets a level of logging on all workers."""
    return _record(f"{LOGGER}{namespace}", {"level": level})


def session_key_record(key: str, now_ms: int) -> StoredRecord:
    """Return the record of the key with which workers sign requests to each other."""
    value = {"key": key, "algorithm": "HmacSHA256", "creation-timestamp": now_ms}
    return _record(SESSION_KEY, value)


def status_record(name: str, task: int | None, status: Mapping[str, Any] | None) -> StoredRecord:
    """Return the record of a status; None: there is none any more."""
    key = f"{STATUS_CONNECTOR}{name}" if task is None else f"{STATUS_TASK}{name}-{task}"
    return _record(key, status)


def topic_record(topic: str, name: str, task: int, now_ms: int | None) -> StoredRecord:
    """Return the record that says that a connector uses a topic; without a time: that this is forgotten."""
    fact = {"name": topic, "connector": name, "task": task, "discoverTimestamp": now_ms}
    return _record(f"{STATUS_TOPIC}{topic}:{CONNECTOR}{name}", None if now_ms is None else {"topic": fact})


def offset_record(name: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> StoredRecord:
    """Return the record of a position in a source; None: there is none any more."""
    return StoredRecord(encode_json([name, partition]), None if offset is None else encode_json(offset))
