"""What holds for a topic or a group: its own overrides, and below them the broker's values.

Overrides come from the metadata log as texts. One that nobody knows, or that does not parse, is passed over:
another version may have written it, and its neighbours still hold.
"""

from collections.abc import Mapping

from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.layers import parse_usable_texts
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.topic import TopicConfig
from ottla.metadata.configs.values import ConfigValue


def topic_defaults(node: NodeConfig) -> TopicConfig:
    """Return what holds for a topic without overrides. Make it once for each NodeConfig and share it."""
    values: dict[str, ConfigValue] = {
        name: node.value_of(key.broker_key) for name, key in TopicConfig.keys.items() if key.broker_key
    }
    values["retention.ms"] = node.retention_ms
    values["segment.ms"] = node.roll_ms
    values["segment.jitter.ms"] = node.roll_jitter_ms
    values["flush.ms"] = node.flush_ms
    return TopicConfig(values)


def topic_config(defaults: TopicConfig, overrides: Mapping[str, str]) -> TopicConfig:
    """Return what holds for a topic with `overrides`."""
    return defaults.replaced(parse_usable_texts(overrides, TopicConfig.keys)) if overrides else defaults


def group_defaults(node: NodeConfig) -> GroupConfig:
    """Return what holds for a group without overrides."""
    return GroupConfig(
        {name: node.value_of(key.broker_key) for name, key in GroupConfig.keys.items() if key.broker_key}
    )


def group_config(defaults: GroupConfig, overrides: Mapping[str, str]) -> GroupConfig:
    """Return what holds for a group with `overrides`."""
    return defaults.replaced(parse_usable_texts(overrides, GroupConfig.keys)) if overrides else defaults
