"""Links by MirrorMaker 2's properties, so that a file of it can be used as it is.

Only what has a counterpart here is read. What MirrorMaker needs for itself (its own topics, tasks, workers)
is passed over.
"""

from collections.abc import Mapping

from ottla.mirror.link import Link, UnusableLink

_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_DEFAULT_GROUPS = ".*"
# Properties of clients that decide how a cluster is reached.
_CLIENT_PROPERTIES = (
    "bootstrap.servers",
    "client.id",
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.keystore.type",
    "ssl.keystore.location",
)


def read_links(properties: Mapping[str, str]) -> list[Link]:
    """Return the links that are enabled. Raises `UnusableLink` where a file has none."""
    names = _items(properties.get("clusters", ""))
    links = [
        _link(properties, source, target)
        for source in names
        for target in names
        if source != target and _of(properties, source, target, "enabled", "false").lower() == "true"
    ]
    if not links:
        raise UnusableLink("no direction is enabled: set `clusters=A,B` and `A->B.enabled=true`")
    return links


def _link(properties: Mapping[str, str], source: str, target: str) -> Link:
    policy = _of(properties, source, target, "replication.policy.class", "")
    separator = _of(properties, source, target, "replication.policy.separator", ".")
    return Link(
        source_name=source,
        source=_client(properties, source),
        target=_client(properties, target),
        topics=_alternatives(_of(properties, source, target, "topics", ".*")),
        groups=_alternatives(_of(properties, source, target, "groups", _DEFAULT_GROUPS)),
        prefix="" if policy == _IDENTITY else source + separator,
        replication_factor=int(_of(properties, source, target, "replication.factor", "-1")),
        refresh_s=float(_of(properties, source, target, "refresh.topics.interval.seconds", "600")),
    )


def _client(properties: Mapping[str, str], cluster: str) -> dict[str, str]:
    found = {
        name: properties[f"{cluster}.{name}"]
        for name in _CLIENT_PROPERTIES
        if f"{cluster}.{name}" in properties
    }
    if "bootstrap.servers" not in found:
        raise UnusableLink(f"{cluster}.bootstrap.servers is missing")
    return found


def _of(properties: Mapping[str, str], source: str, target: str, name: str, default: str) -> str:
    return properties.get(f"{source}->{target}.{name}", properties.get(name, default))


def _items(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _alternatives(text: str) -> str:
    """Return one pattern for a list of them."""
    return "|".join(f"(?:{part})" for part in _items(text))
