"""What a connector may demand of its worker: properties of its clients, and settings of Spark.

Who creates a connector need not be trusted with what the worker has: its login to the cluster, and its Java
process.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ottla.client.properties import InvalidProperty

POLICY: Final = "connector.client.config.override.policy"
ALLOWLIST: Final = "connector.client.config.override.allowlist"
SPARK_ALLOWED: Final = "ottla.spark.conf.allowed"
MISSPELT: Final = "ottla.misspelt.keys"
_REFUSED, _IGNORED = "refused", "ignored"
_POLICIES: Final = ("All", "None", "Principal", "Allowlist")
_JAVA_PACKAGE: Final = "org.apache.kafka.connect.connector.policy."
_JAVA_ENDING: Final = "ConnectorClientConfigOverridePolicy"
_WHERE: Final = "in the connector configuration."
_OVERRIDES: Final = ("producer.override.", "consumer.override.", "admin.override.")
_OF_PRINCIPAL: Final = frozenset(
    ("sasl.jaas.config", "sasl.mechanism", "security.protocol", "sasl.username", "sasl.password")
)
_SPARK: Final = "spark.conf."
_SPARK_MASTER: Final = "spark.master"
# They say how Spark computes, and name no class, no file, no option of Java and no other machine.
_HARMLESS: Final = (
    "default.parallelism",
    "sql.ansi.enabled",
    "sql.files.maxPartitionBytes",
    "sql.orc.compression.codec",
    "sql.parquet.compression.codec",
    "sql.session.timeZone",
    "sql.shuffle.partitions",
)


@dataclass(frozen=True)
class Permissions:
    """What the worker allows."""

    policy: str = "All"
    allowlist: frozenset[str] = frozenset()
    spark: tuple[str, ...] = ()
    """Names of settings of Spark without `spark.`. A `*` stands for anything."""
    may_misspell: bool = False
    """Whether keys that look like others are taken without effect, as Kafka Connect does."""

    def errors(self, config: Mapping[str, str | None]) -> dict[str, list[str]]:
        """Return what a connector demands and may not have, by key."""
        return {key: [text] for key, text in self._errors(config)}

    def _errors(self, config: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
        for key, value in config.items():
            prefix = next((prefix for prefix in _OVERRIDES if key.startswith(prefix)), None)
            if prefix is not None and not self._may_override(key.removeprefix(prefix)):
                name = key.removeprefix(prefix)
                yield key, f"The '{self.policy}' policy does not allow '{name}' to be overridden {_WHERE}"
            elif key.startswith(_SPARK) and not self._may_set(key.removeprefix(_SPARK)):
                name = key.removeprefix(_SPARK)
                yield key, f"{key} is not allowed: add {name} to the worker's property {SPARK_ALLOWED}"
            elif key == _SPARK_MASTER and not _is_local(value or "") and not self._may_set("master"):
                yield key, f"{key} is not local: add master to the worker's property {SPARK_ALLOWED}"

    def _may_override(self, name: str) -> bool:
        match self.policy:
            case "All":
                return True
            case "Principal":
                return name in _OF_PRINCIPAL
            case "Allowlist":
                return name in self.allowlist
            case _:
                return False

    def _may_set(self, name: str) -> bool:
        return any(fnmatchcase(name, allowed) for allowed in (*_HARMLESS, *self.spark))


def read_permissions(properties: Mapping[str, str]) -> Permissions:
    """Read what the worker's properties allow. Raises InvalidProperty for a policy that is not known."""
    given = properties.get(POLICY, "").strip() or "All"
    policy = given.removeprefix(_JAVA_PACKAGE).removesuffix(_JAVA_ENDING)
    if policy not in _POLICIES:
        raise InvalidProperty(f"{POLICY} is {given!r}: use one of {', '.join(_POLICIES)}")
    misspelt = properties.get(MISSPELT, "").strip() or _REFUSED
    if misspelt not in (_REFUSED, _IGNORED):
        raise InvalidProperty(f"{MISSPELT} is {misspelt!r}: use {_REFUSED} or {_IGNORED}")
    return Permissions(
        policy,
        frozenset(_list(properties, ALLOWLIST)),
        tuple(_list(properties, SPARK_ALLOWED)),
        may_misspell=misspelt == _IGNORED,
    )


def _list(properties: Mapping[str, str], name: str) -> list[str]:
    return [part.strip() for part in properties.get(name, "").split(",") if part.strip()]


def _is_local(master: str) -> bool:
    return not master or master == "local" or (master.startswith("local[") and master.endswith("]"))


# The worker's login is for the brokers that the worker was configured with, and the way that it connects.

_LOGIN: Final = (
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "sasl.tokenauth",
    "sasl.oauthbearer.",
    "ssl.certificate.",
    "ssl.key.",
    "ssl.keystore.",
)
_OWN_LOGIN: Final = tuple(name for name in _LOGIN if name != "sasl.oauthbearer.")
_CONNECTING: Final = ("bootstrap.servers", "security.", "sasl.", "ssl.", "client.dns.", "metadata.recovery.")


def client_properties(worker: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a connector's client.

    A connector that changes where or how its client connects gets nothing of the worker's login: it could
    have the worker's password sent to a broker of its own, or sent unencrypted.
    """
    if any(_leads_away(name, value, worker) for name, value in overrides.items()):
        worker = {name: value for name, value in worker.items() if not name.startswith(_LOGIN)}
    return {**worker, **overrides}


def _leads_away(name: str, value: str, worker: Mapping[str, str]) -> bool:
    if not name.startswith(_CONNECTING) or name.startswith(_OWN_LOGIN):
        return False
    known = worker.get(name)
    if name == "bootstrap.servers":
        return not _addresses(value) <= _addresses(known or "")
    return value != known


def _addresses(text: str) -> set[str]:
    return {part.strip() for part in text.split(",") if part.strip()}
