"""What requests do to connectors: records to write, decided from what the config topic says."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.connect.errors import RestError, not_found, unknown_connector
from ottla.connect.herding.units import Unit
from ottla.connect.store import records
from ottla.connect.store.configs import PAUSED, STARTED, STOPPED, ConfigState, SessionKey
from ottla.connect.store.records import StoredRecord
from ottla.connect.store.statuses import FAILED, RESTARTING, Status, StatusState

__all__ = ["PAUSED", "STARTED", "STOPPED"]
Records = list[StoredRecord]


def decide_create(
    state: ConfigState, name: str, config: Mapping[str, str | None], initial_state: str | None
) -> Records:
    """Create a connector. Raises RestError if there is one."""
    if name in state.connectors:
        raise RestError(409, f"Connector {name} already exists")
    first = [] if initial_state is None else [records.target_state_record(name, initial_state)]
    return [*first, records.connector_record(name, config)]


def decide_configure(name: str, config: Mapping[str, str | None]) -> Records:
    """Create a connector, or give it another configuration."""
    return [records.connector_record(name, config)]


def patched(state: ConfigState, name: str, patch: Mapping[str, str | None]) -> dict[str, str]:
    """Return a configuration with some keys changed; None removes a key. Raises RestError."""
    if name not in state.connectors:
        raise not_found(name)
    merged = {**state.connectors[name], **patch}
    return {key: value for key, value in merged.items() if value is not None}


def decide_delete(state: ConfigState, name: str) -> Records:
    """Delete a connector. Its offsets stay: a connector of the same name goes on from them."""
    if name not in state.connectors:
        raise not_found(name)
    return [records.connector_record(name, None), records.target_state_record(name, None)]


def decide_target_state(state: ConfigState, name: str, target: str) -> Records:
    """Pause, stop or resume a connector."""
    if name not in state.connectors:
        raise unknown_connector(name)
    return [records.target_state_record(name, target)]


def decide_restart(state: ConfigState, name: str, *, include_tasks: bool, only_failed: bool) -> Records:
    """Ask all workers to restart what they run of a connector."""
    if name not in state.connectors:
        raise unknown_connector(name, ":")
    return [records.restart_record(name, include_tasks=include_tasks, only_failed=only_failed)]


def is_restarted(
    status: Status | None, *, is_connector: bool, include_tasks: bool, only_failed: bool
) -> bool:
    """Say whether a restart concerns a connector or a task."""
    if status is None or (not is_connector and not include_tasks):
        return False
    return not only_failed or status.state == FAILED


def restart_answer(
    statuses: StatusState, name: str, kind: str, *, include_tasks: bool, only_failed: bool
) -> dict[str, Any]:
    """Return the status of a connector in which all that is being restarted says so."""

    def shown(status: Status, *, is_connector: bool) -> dict[str, Any]:
        restarts = is_restarted(
            status, is_connector=is_connector, include_tasks=include_tasks, only_failed=only_failed
        )
        return (status._replace(state=RESTARTING) if restarts else status).answer()

    connector = statuses.connectors.get(name)
    if connector is None:
        raise RestError(404, f"Status for connector {name} not found")
    return {
        "name": name,
        "connector": shown(connector, is_connector=True),
        "tasks": [
            {"id": task, **shown(status, is_connector=False)}
            for task, status in sorted(statuses.tasks.get(name, {}).items())
        ],
        "type": kind,
    }


def decide_tasks(state: ConfigState, name: str, configs: Sequence[Mapping[str, str]]) -> Records:
    """Give a connector the tasks that it asked for, unless it has these already."""
    if name not in state.connectors or state.tasks.get(name) == list(map(dict, configs)):
        return []
    return [
        *(records.task_record(name, number, config) for number, config in enumerate(configs)),
        records.commit_record(name, len(configs)),
    ]


def wanted_units(state: ConfigState) -> list[Unit]:
    """Return all that is to be divided among the workers."""
    units = [Unit(name) for name in sorted(state.connectors)]
    for name in sorted(state.connectors):
        units += [Unit(name, task) for task in range(len(state.tasks.get(name, ())))]
    return units


def status_answer(statuses: StatusState, name: str, kind: str) -> dict[str, Any]:
    """Return how a connector does, as the REST API shows it. Raises RestError."""
    connector = statuses.connectors.get(name)
    if connector is None:
        raise RestError(404, f"No status found for connector {name}")
    tasks = sorted(statuses.tasks.get(name, {}).items())
    return {
        "name": name,
        "connector": connector.answer(),
        "tasks": [{"id": task, **status.answer()} for task, status in tasks],
        "type": kind,
    }


def is_key_due(key: SessionKey | None, now_ms: int, ttl_ms: int) -> bool:
    """Say whether the leader has to write a new key."""
    return key is None or now_ms - key.created_ms >= ttl_ms
