"""The settings of a worker, by the names of Kafka's worker properties."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.client.properties import InvalidProperty
from ottla.connect.configs.common import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER

_STRING_CONVERTER: Final = "org.apache.kafka.connect.storage.StringConverter"
_CLIENT_PREFIXES: Final = ("producer.", "consumer.", "admin.")
# Properties of Kafka's worker that have no meaning here: they are taken and ignored.
_IGNORED: Final = (
    "plugin.path",
    "plugin.discovery",
    "listeners",
    "rest.",
    "access.control.",
    "connect.protocol",
    "scheduled.rebalance.max.delay.ms",
    "exactly.once.source.support",
    "inter.worker.",
    "metrics.",
    "metric.",
    "connector.client.config.override.policy",
    "topic.creation.enable",
    "task.shutdown.graceful.timeout.ms",
    "offset.flush.timeout.ms",
    "rebalance.timeout.ms",
    "config.providers",
    "worker.",
)


@dataclass(frozen=True)
class WorkerSettings:
    """All that a worker needs to know beside its server and its connection to the cluster."""

    group_id: str = "connect-cluster"
    config_topic: str = "connect-configs"
    offset_topic: str = "connect-offsets"
    status_topic: str = "connect-status"
    config_replicas: int | None = None
    offset_replicas: int | None = None
    status_replicas: int | None = None
    offset_partitions: int = 25
    status_partitions: int = 5
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    offset_flush_interval_ms: int = 5_000
    key_ttl_ms: int = 3_600_000
    topic_tracking: bool = True
    topic_tracking_reset: bool = True
    defaults: Mapping[str, str] = field(
        default_factory=lambda: {
            KEY_CONVERTER: _STRING_CONVERTER,
            VALUE_CONVERTER: _STRING_CONVERTER,
            HEADER_CONVERTER: "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        }
    )
    """The converters of connectors that name none, with their own settings."""
    clients: Mapping[str, str] = field(default_factory=dict)
    """Properties of the producers, consumers and admins of tasks, with their prefixes."""

    def client(self, kind: str, config: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of one kind of client, with what a connector overrides."""
        prefix, override = f"{kind}.", f"{kind}.override."
        found = {
            key.removeprefix(prefix): value for key, value in self.clients.items() if key.startswith(prefix)
        }
        found |= {
            key.removeprefix(override): value for key, value in config.items() if key.startswith(override)
        }
        return found


_FIELDS: Final[Mapping[str, tuple[str, type]]] = {
    "group.id": ("group_id", str),
    "config.storage.topic": ("config_topic", str),
    "offset.storage.topic": ("offset_topic", str),
    "status.storage.topic": ("status_topic", str),
    "config.storage.replication.factor": ("config_replicas", int),
    "offset.storage.replication.factor": ("offset_replicas", int),
    "status.storage.replication.factor": ("status_replicas", int),
    "offset.storage.partitions": ("offset_partitions", int),
    "status.storage.partitions": ("status_partitions", int),
    "session.timeout.ms": ("session_timeout_ms", int),
    "heartbeat.interval.ms": ("heartbeat_interval_ms", int),
    "offset.flush.interval.ms": ("offset_flush_interval_ms", int),
    "inter.worker.key.ttl.ms": ("key_ttl_ms", int),
    "topic.tracking.enable": ("topic_tracking", bool),
    "topic.tracking.allow.reset": ("topic_tracking_reset", bool),
}


def read_settings(properties: Mapping[str, str]) -> tuple[WorkerSettings, dict[str, str]]:
    """Divide properties into those of the worker and those of its clients. Raises InvalidProperty."""
    given: dict[str, Any] = {}
    defaults = dict(WorkerSettings().defaults)
    clients: dict[str, str] = {}
    common: dict[str, str] = {}
    for name, text in properties.items():
        if name in _FIELDS:
            field_name, kind = _FIELDS[name]
            given[field_name] = _read(name, kind, text)
        elif name.startswith((KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)):
            defaults[name] = text
        elif name.startswith(_CLIENT_PREFIXES):
            clients[name] = text
        elif not name.startswith(_IGNORED):
            common[name] = text
    return WorkerSettings(**given, defaults=defaults, clients=clients), common


def _read(name: str, kind: type, text: str) -> Any:
    if kind is bool:
        return text.strip().lower() == "true"
    if kind is str:
        return text.strip()
    try:
        number = int(text)
    except ValueError:
        raise InvalidProperty(f"{name} is {text!r}: it must be a whole number") from None
    return None if number == -1 else number
