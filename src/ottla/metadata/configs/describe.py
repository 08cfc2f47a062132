"""The answers to DescribeConfigs: each config of a resource, its value, and every place that could set it.

The list of synonyms is Kafka's, oddities included. Only places from the config's own name on are shown, so a
`log.retention.ms` that only `log.retention.hours` sets has none; its value then passes for a default. A
broker's config that nobody declares is listed with its value hidden: it might be a secret of a plugin. Kafka
answers in no particular order, Ottla by name. Ottla's own configs are listed, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.declare import ConfigKey, ConfigValues
from ottla.metadata.configs.effective import EffectiveConfigs, group_config
from ottla.metadata.configs.kinds import UpdateMode
from ottla.metadata.configs.layers import BrokerLayers, parse_usable
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.synonyms import broker_synonyms, find_listener_base, time_synonyms
from ottla.metadata.configs.topic import TopicConfig
from ottla.wire.config_kinds import ConfigSource
from ottla.wire.messages.create_topics import CreatableTopicConfigs
from ottla.wire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym


class Wanted(NamedTuple):
    """What a request asks for: these configs or all, and how much about each."""

    names: frozenset[str] | None = None
    synonyms: bool = False
    documentation: bool = False

    def selects(self, name: str) -> bool:
        """Say whether the request asks for this config."""
        return self.names is None or name in self.names


def describe_topic(
    configs: EffectiveConfigs, overrides: Mapping[str, str], wanted: Wanted
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Describe what holds for a topic with `overrides`."""
    values = configs.topic(overrides)
    return tuple(_describe_inherited(values, overrides, ConfigSource.TOPIC, configs.layers, wanted))


def describe_created_topic(
    configs: EffectiveConfigs, overrides: Mapping[str, str]
) -> tuple[CreatableTopicConfigs, ...]:
    """Describe a topic for the answer to CreateTopics.

    Here Kafka sees through the units of time: what `log.retention.hours` sets comes from the broker's file.
    """
    values = configs.topic(overrides)
    return tuple(
        CreatableTopicConfigs(
            name=name,
            # The topic's own texts are shown as they were given, unlike in DescribeConfigs.
            value=overrides.get(name, key.format(values.value_of(name))),
            read_only=False,
            config_source=_true_source(key, overrides, configs.layers),
            is_sensitive=False,
        )
        for name, key in sorted(TopicConfig.keys.items())
        if name in overrides or not key.unlisted
    )


def describe_group(
    configs: EffectiveConfigs, overrides: Mapping[str, str], wanted: Wanted
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Describe what is set for a group, also where the broker's bounds no longer allow it."""
    values = group_config(configs.group_defaults, overrides)
    return tuple(_describe_inherited(values, overrides, ConfigSource.GROUP, configs.layers, wanted))


def describe_client_metrics(
    overrides: Mapping[str, str], wanted: Wanted
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Describe a client metrics subscription, which inherits from nobody."""
    values = ClientMetricsConfig(parse_usable(ClientMetricsConfig.keys, overrides))
    return tuple(_describe_inherited(values, overrides, ConfigSource.CLIENT_METRICS, None, wanted))


def describe_broker(configs: EffectiveConfigs, wanted: Wanted) -> tuple[DescribeConfigsResourceResult, ...]:
    """Describe what holds for this broker."""
    texts = configs.layers.merged()
    names = {name for name, key in NodeConfig.keys.items() if not _is_hidden(key)} | texts.keys()
    return tuple(
        _describe_broker_config(name, _broker_value(name, configs.node, texts), configs.layers, wanted)
        for name in sorted(filter(wanted.selects, names))
    )


def describe_broker_defaults(
    configs: EffectiveConfigs, wanted: Wanted
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Describe what was set for all brokers while running, and nothing else."""
    texts = configs.layers.dynamic_default
    only_defaults = BrokerLayers({}, texts)
    return tuple(
        _describe_broker_config(name, texts[name], only_defaults, wanted, with_default=False)
        for name in sorted(filter(wanted.selects, texts))
    )


def describe_loggers(levels: Mapping[str, str], wanted: Wanted) -> tuple[DescribeConfigsResourceResult, ...]:
    """Describe the log levels in force, by name of logger."""
    return tuple(
        DescribeConfigsResourceResult(
            name=name,
            value=levels[name],
            read_only=False,
            config_source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            is_sensitive=False,
            synonyms=(),
        )
        for name in sorted(filter(wanted.selects, levels))
    )


_OWN: Final = "ottla."


def _is_hidden(key: ConfigKey[Any]) -> bool:
    """Say whether a config is left out while it has its default: some of Kafka's own, as Kafka does.

    Ottla's are shown: somebody who asks which promise a topic gives must see those that no one has set.
    """
    return key.unlisted and not key.name.startswith(_OWN)


def _true_source(key: ConfigKey[Any], overrides: Mapping[str, str], layers: BrokerLayers) -> ConfigSource:
    if key.name in overrides:
        return ConfigSource.TOPIC
    names = time_synonyms(key.broker_key) if key.broker_key else ()
    for source, texts in layers.by_strength():
        if any(name in texts for name in names):
            return source
    return ConfigSource.DEFAULT


def _broker_value(name: str, node: NodeConfig, texts: Mapping[str, str]) -> str | None:
    key = NodeConfig.keys.get(name)
    if key is None or _is_hidden(key):
        return texts[name]
    return key.format(node.value_of(name))


def _describe_broker_config(
    name: str, value: str | None, layers: BrokerLayers, wanted: Wanted, *, with_default: bool = True
) -> DescribeConfigsResourceResult:
    key = NodeConfig.keys.get(find_listener_base(name) or name)
    is_sensitive = key is None or key.is_sensitive
    synonyms = _broker_synonyms(name, layers, is_sensitive=is_sensitive, with_default=with_default)
    is_declared = name in NodeConfig.keys
    return DescribeConfigsResourceResult(
        name=name,
        value=None if is_sensitive else value,
        # A listener's own config counts as read-only although it can be changed: so says Kafka.
        read_only=not is_declared or NodeConfig.keys[name].update is UpdateMode.READ_ONLY,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=is_sensitive,
        synonyms=synonyms if wanted.synonyms else (),
        config_type=0 if key is None or key.plugin else key.type,
        documentation=key.doc if wanted.documentation and key is not None and not key.plugin else None,
    )


def _describe_inherited(
    values: ConfigValues,
    overrides: Mapping[str, str],
    own_source: ConfigSource,
    layers: BrokerLayers | None,
    wanted: Wanted,
) -> Iterator[DescribeConfigsResourceResult]:
    """Describe configs that a resource has itself or takes from the broker."""
    for name, key in sorted(values.keys.items()):
        # What nobody declares is passed over, as Kafka passes over such an override in the metadata.
        if not wanted.selects(name) or (_is_hidden(key) and name not in overrides):
            continue
        value = key.format(values.value_of(name))
        synonyms = _inherited_synonyms(key, own_source, layers)
        if name in overrides:
            synonyms = (DescribeConfigsSynonym(name=name, value=value, source=own_source), *synonyms)
        yield DescribeConfigsResourceResult(
            name=name,
            value=value,
            read_only=False,
            config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
            is_sensitive=key.is_sensitive,
            synonyms=synonyms if wanted.synonyms else (),
            config_type=key.type,
            documentation=key.doc if wanted.documentation else None,
        )


def _inherited_synonyms(
    key: ConfigKey[Any], own_source: ConfigSource, layers: BrokerLayers | None
) -> tuple[DescribeConfigsSynonym, ...]:
    if key.broker_key is not None and layers is not None:
        return _broker_synonyms(key.broker_key, layers, is_sensitive=False)
    if own_source is ConfigSource.GROUP:
        # Where no broker config stands behind a group's, Kafka shows the group's own default instead.
        return (_default_synonym(key),)
    return ()


def _broker_synonyms(
    name: str, layers: BrokerLayers, *, is_sensitive: bool, with_default: bool = True
) -> tuple[DescribeConfigsSynonym, ...]:
    """List what sets `name` or stands in for it, the strongest first; nothing before its own name."""
    names = broker_synonyms(name)
    found = [
        DescribeConfigsSynonym(name=synonym, value=None if is_sensitive else texts[synonym], source=source)
        for source, texts in layers.by_strength()
        for synonym in names
        if synonym in texts
    ]
    if with_default:
        found += [_default_synonym(NodeConfig.keys[synonym]) for synonym in names if _has_default(synonym)]
    first = next((at for at, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[first:])


def _has_default(name: str) -> bool:
    key = NodeConfig.keys.get(name)
    return key is not None and (key.internal or not _is_hidden(key)) and key.format_default() is not None


def _default_synonym(key: ConfigKey[Any]) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=key.name, value=key.format_default(), source=ConfigSource.DEFAULT)
