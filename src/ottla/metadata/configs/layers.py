"""The layers a broker's configs come from, and what holds when all are put on top of each other.

From strong to weak: what was set for this broker while running, what was set for all brokers while running,
what the node was started with, the declared defaults. Layers hold texts, as they were given; only
`node_config` parses. The texts matter: DescribeConfigs shows each layer's own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.kinds import ConfigSource
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.values import ConfigValue

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class BrokerLayers(NamedTuple):
    """The texts set for a broker, by layer."""

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
        """Return the text that holds for each config that any layer sets."""
        return {**self.static, **self.dynamic_default, **self.dynamic_broker}


def node_config(layers: BrokerLayers) -> NodeConfig:
    """Return the values that hold. Raises InvalidConfig for the first one that is none.

    A dynamic text that does not parse is passed over, and the layer below holds: it lies in the metadata of
    the cluster, and a broker that refused to start over it could not be mended by the cluster's own tools.
    """
    values = parse_texts(layers.static)
    for layer in (layers.dynamic_default, layers.dynamic_broker):
        values.update(parse_usable_texts(layer))
    return NodeConfig(values)


def parse_texts(texts: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Parse the texts of declared broker configs; others belong to somebody else."""
    return {
        name: NodeConfig.keys[name].parse(text) for name, text in texts.items() if name in NodeConfig.keys
    }


def parse_usable_texts(
    texts: Mapping[str, str], keys: Mapping[str, Any] = NodeConfig.keys
) -> dict[str, ConfigValue]:
    """Parse what can be parsed, and leave out the rest."""
    values: dict[str, ConfigValue] = {}
    for name, text in texts.items():
        if name in keys:
            try:
                values[name] = keys[name].parse(text)
            except InvalidConfig:
                continue
    return values
