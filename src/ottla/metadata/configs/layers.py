"""The layers a broker's configs come from, and what holds when all are put on top of each other.

From strong to weak: what was set for this broker while running, what was set for all brokers while running,
what the node was started with, the declared defaults. Layers hold texts, as they were given; only
`node_config` parses. The texts matter: DescribeConfigs shows each layer's own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.declare import ConfigKey
from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.kinds import UpdateMode
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.synonyms import find_listener_base, time_synonyms
from ottla.metadata.configs.values import ConfigValue
from ottla.wire.config_kinds import ConfigSource

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

LISTENER_SECURITY_CONFIGS: Final = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)
"""Keys and certificates change while running for a named listener only, never for all listeners at once."""

_CLUSTER_WIDE_LISTENER_CONFIGS: Final = frozenset(
    ("max.connections", "max.connection.creation.rate", "num.network.threads")
)


class BrokerLayers(NamedTuple):
    """The texts set for a broker, by layer. `broker_layers` makes one of what lies in the metadata."""

    static: Mapping[str, str]
    dynamic_default: Mapping[str, str] = NOTHING
    dynamic_broker: Mapping[str, str] = NOTHING

    def by_strength(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """Return the layers, the strongest first."""
        return (
            (ConfigSource.DYNAMIC_BROKER, self.dynamic_broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
            (ConfigSource.STATIC_BROKER, self.static),
        )

    def merged(self) -> dict[str, str]:
        """Return the text that holds for each config that any layer sets.

        A time set in one unit replaces what weaker layers say about it in any unit.
        """
        texts = dict(self.static)
        for layer in (self.dynamic_default, self.dynamic_broker):
            for name, text in layer.items():
                for synonym in time_synonyms(name):
                    texts.pop(synonym, None)
                texts[name] = text
        return texts


def broker_layers(
    static: Mapping[str, str], default_overrides: Mapping[str, str], broker_overrides: Mapping[str, str]
) -> BrokerLayers:
    """Put the overrides that lie in the metadata on top of what the node was started with.

    Overrides that cannot be used are passed over, and the layer below holds. A broker that refused to start
    over them could not be fixed by the cluster's own tools.
    """
    return BrokerLayers(
        static,
        {
            name: text
            for name, text in default_overrides.items()
            if is_usable(name, text, for_one_broker=False)
        },
        {name: text for name, text in broker_overrides.items() if is_usable(name, text, for_one_broker=True)},
    )


def is_usable(name: str, text: str, *, for_one_broker: bool) -> bool:
    """Say whether a dynamic text can take effect."""
    if is_restart_only(name) or name in LISTENER_SECURITY_CONFIGS:
        return False
    if not for_one_broker and is_per_broker(name):
        return False
    key = NodeConfig.keys.get(find_listener_base(name) or name)
    try:
        if key is not None:
            key.parse(text)
    except InvalidConfig:
        return False
    return True


def is_restart_only(name: str) -> bool:
    """Say whether a config is known and cannot change while the broker runs."""
    key = NodeConfig.keys.get(name)
    return key is not None and key.update is UpdateMode.READ_ONLY and not key.plugin


def is_per_broker(name: str) -> bool:
    """Say whether a config has to be set for one broker, and cannot be for all at once."""
    base = find_listener_base(name)
    if base is not None:
        return base not in _CLUSTER_WIDE_LISTENER_CONFIGS
    key = NodeConfig.keys.get(name)
    return key is not None and key.update is UpdateMode.PER_BROKER and not key.unlisted


def node_config(layers: BrokerLayers) -> NodeConfig:
    """Return the values that hold. Raises InvalidConfig for the first text that is none."""
    return NodeConfig(
        {
            name: NodeConfig.keys[name].parse(text)
            for name, text in layers.merged().items()
            if name in NodeConfig.keys
        }
    )


def parse_usable(keys: Mapping[str, ConfigKey[Any]], texts: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Parse what can be parsed, and leave out the rest."""
    values: dict[str, ConfigValue] = {}
    for name, text in texts.items():
        if name in keys:
            try:
                values[name] = keys[name].parse(text)
            except InvalidConfig:
                continue
    return values
