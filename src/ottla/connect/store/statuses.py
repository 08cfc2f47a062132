"""What the records of the status topic add up to: how connectors and tasks do, and which topics they use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ottla.connect.store import records
from ottla.connect.store.records import UnreadableRecord, decode_json

UNASSIGNED: Final = "UNASSIGNED"
RUNNING: Final = "RUNNING"
PAUSED: Final = "PAUSED"
STOPPED: Final = "STOPPED"
FAILED: Final = "FAILED"
RESTARTING: Final = "RESTARTING"


class Status(NamedTuple):
    """How a connector or a task does, and who says so."""

    state: str
    worker_id: str
    generation: int
    version: str | None = None
    trace: str | None = None

    def content(self) -> dict[str, Any]:
        """Return the value of its record."""
        return {
            "state": self.state,
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
            "version": self.version,
        }

    def answer(self) -> dict[str, Any]:
        """Return it as the REST API shows it."""
        shown: dict[str, Any] = {"state": self.state, "worker_id": self.worker_id}
        if self.version is not None:
            shown["version"] = self.version
        return shown if self.trace is None else {**shown, "trace": self.trace}


@dataclass
class StatusState:
    """Statuses by connector and task, and topics by connector."""

    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[str, dict[int, Status]] = field(default_factory=dict)
    topics: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of a connector: the topics it uses, each with the task that said so."""

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply a record. Raises UnreadableRecord."""
        name, content = (key or b"").decode(errors="replace"), decode_json(value)
        if name.startswith(records.STATUS_CONNECTOR):
            _put(self.connectors, name.removeprefix(records.STATUS_CONNECTOR), _status(content))
        elif name.startswith(records.STATUS_TASK):
            connector, dash, number = name.removeprefix(records.STATUS_TASK).rpartition("-")
            if not dash or not number.isdecimal():
                raise UnreadableRecord(f"{name!r} names no task")
            _put(self.tasks.setdefault(connector, {}), int(number), _status(content))
        elif name.startswith(records.STATUS_TOPIC):
            self._topic(name.removeprefix(records.STATUS_TOPIC), content)
        else:
            raise UnreadableRecord(f"the key {name!r} is not known")

    def _topic(self, name: str, content: Mapping[str, Any] | None) -> None:
        # A topic has no colon in its name, a connector may have one.
        topic, colon, connector = name.partition(f":{records.CONNECTOR}")
        if not colon:
            raise UnreadableRecord(f"{name!r} names no topic of a connector")
        used = self.topics.setdefault(connector, {})
        if content is None:
            used.pop(topic, None)
        else:
            used[topic] = int(content.get("topic", {}).get("task", 0))

    def find(self, name: str, task: int | None) -> Status | None:
        """Return how a connector or a task does."""
        return self.connectors.get(name) if task is None else self.tasks.get(name, {}).get(task)


def is_safe(stored: Status | None, new: Status) -> bool:
    """Say whether a status may be written: not by a worker that has lost the task and does not know it."""
    return stored is None or stored.worker_id == new.worker_id or stored.generation <= new.generation


def _put(statuses: dict[Any, Status], key: Any, status: Status | None) -> None:
    if status is None:
        statuses.pop(key, None)
    else:
        statuses[key] = status


def _status(content: Any) -> Status | None:
    if content is None:
        return None
    try:
        return Status(
            str(content["state"]),
            str(content["worker_id"]),
            int(content["generation"]),
            content.get("version"),
            content.get("trace"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableRecord(f"not a status: {error!r}") from error
