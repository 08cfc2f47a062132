"""The settings of a worker, by the names of Kafka's worker properties."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.client.properties import InvalidProperty
from ottla.connect.configs.permissions import (
    ALLOWLIST,
    MISSPELT,
    POLICY,
    SPARK_ALLOWED,
    Permissions,
    client_properties,
    read_permissions,
)
from ottla.connect.configs.shared_keys import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER

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
    POLICY,
    ALLOWLIST,
    SPARK_ALLOWED,
    MISSPELT,
    "topic.creation.enable",
    "task.shutdown.graceful.timeout.ms",
    "offset.flush.timeout.ms",
    "rebalance.timeout.ms",
    "config.providers",
    "worker.",
)
# Properties that protect, and have no counterpart here.
_REFUSED: Final = {
    "rest.extension.classes": "use --users or --tls-client-ca, as extensions of Java cannot be loaded",
    "response.http.headers.config": "put a proxy that adds headers in front of the worker",
}


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

    permissions: Permissions = field(default_factory=Permissions)
    """What connectors may demand."""

    def client(
        self, kind: str, common: Mapping[str, str], config: Mapping[str, str], **defaults: str
    ) -> dict[str, str]:
        """Return the properties of one kind of client, with what a connector overrides.

        `common` has those of all the worker's clients. Defaults give way to all others, with dots for
        underscores.
        """
        return client_properties(
            {
                **common,
                **{name.replace("_", "."): value for name, value in defaults.items()},
                **_below(f"{kind}.", self.clients),
            },
            _below(f"{kind}.override.", config),
        )


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


def read_settings(
    properties: Mapping[str, str], *, answers_tls: bool = False, wants_certificates: bool = False
) -> tuple[WorkerSettings, dict[str, str]]:
    """Divide properties into those of the worker and those of its clients. Raises InvalidProperty."""
    _refuse_unprotected(properties, answers_tls=answers_tls, wants_certificates=wants_certificates)
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
    permissions = read_permissions(properties)
    return WorkerSettings(**given, defaults=defaults, clients=clients, permissions=permissions), common


def _below(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def _refuse_unprotected(
    properties: Mapping[str, str], *, answers_tls: bool, wants_certificates: bool
) -> None:
    """Refuse properties that protect a worker of Kafka and would not protect this one."""
    for name, way_out in _REFUSED.items():
        if properties.get(name, "").strip():
            raise InvalidProperty(f"{name} is not supported: {way_out}")
    if properties.get("admin.listeners") is not None:
        raise InvalidProperty(
            "admin.listeners is not supported: this worker has one listener for all, so leave it out"
        )
    listeners = properties.get("listeners", "") + properties.get("rest.advertised.listener", "")
    if "https" in listeners.lower() and not answers_tls:
        raise InvalidProperty(
            "listeners has https, and this worker would answer without TLS: add --tls-certificate"
        )
    for name in ("listeners.https.ssl.client.auth", "ssl.client.auth"):
        if properties.get(name, "none").strip().lower() == "required" and not wants_certificates:
            raise InvalidProperty(
                f"{name} is required, and this worker would ask for no certificates: add --tls-client-ca"
            )


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
