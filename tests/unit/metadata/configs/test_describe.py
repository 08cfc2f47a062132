"""What DescribeConfigs tells; the differential tests hold all of it against Kafka's answers."""

from typing import Any

from ottla.metadata.configs.describe import (
    Wanted,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
)
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.load import STARTING_VALUES
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.topic import TopicConfig
from ottla.wire.config_kinds import ConfigSource, ConfigType

STATIC = {**STARTING_VALUES, "log.dirs": "/data"}
CONFIGS = EffectiveConfigs(
    {**STATIC, "ssl.keystore.password": "hunter2", "log.cleaner.threads": "2", "plugin.secret": "hunter3"},
    {"log.cleaner.threads": "3"},
    {"log.cleaner.threads": "4"},
)
ALL = Wanted(synonyms=True, documentation=True)


def by_name(described: tuple[Any, ...]) -> dict[str, Any]:
    return {config.name: config for config in described}


def test_a_brokers_config_shows_each_layer_strongest_first() -> None:
    config = by_name(describe_broker(CONFIGS, ALL))["log.cleaner.threads"]
    assert config.value == "4"
    assert config.config_source == ConfigSource.DYNAMIC_BROKER
    assert [(synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("4", ConfigSource.DYNAMIC_BROKER),
        ("3", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("2", ConfigSource.STATIC_BROKER),
        ("1", ConfigSource.DEFAULT),
    ]


def test_secrets_are_never_shown() -> None:
    described = describe_broker(CONFIGS, ALL)
    assert "hunter" not in repr(described)
    configs = by_name(described)
    assert configs["ssl.keystore.password"].is_sensitive
    assert configs["plugin.secret"].is_sensitive
    assert configs["plugin.secret"].config_type == 0


def test_only_what_is_wanted_is_described() -> None:
    wanted = Wanted(frozenset(("node.id", "no.such.config")))
    (config,) = describe_broker(CONFIGS, wanted)
    assert (config.name, config.value, config.synonyms, config.documentation) == ("node.id", "0", (), None)


def test_internal_configs_are_listed_only_when_they_are_set_and_our_own_always() -> None:
    defaults = by_name(describe_broker(CONFIGS, ALL))
    assert "log.initial.task.delay.ms" not in defaults
    assert (defaults["ottla.acks.all.sync"].value, defaults["ottla.acks.all.sync"].config_source) == (
        "true",
        ConfigSource.DEFAULT,
    )
    configs = EffectiveConfigs({**STATIC, "ottla.acks.all.sync": "false", "log.initial.task.delay.ms": "5"})
    described = by_name(describe_broker(configs, ALL))
    assert described["ottla.acks.all.sync"].value == "false"
    assert described["ottla.acks.all.sync"].config_type == ConfigType.BOOLEAN
    assert described["log.initial.task.delay.ms"].value == "5"


def test_the_defaults_of_all_brokers_are_described_alone() -> None:
    (config,) = describe_broker_defaults(CONFIGS, ALL)
    assert (config.name, config.value) == ("log.cleaner.threads", "3")
    assert [synonym.source for synonym in config.synonyms] == [ConfigSource.DYNAMIC_DEFAULT_BROKER]


def test_a_topics_config_shows_what_stands_behind_it() -> None:
    configs = EffectiveConfigs({**STATIC, "log.segment.bytes": "3000000"})
    described = by_name(describe_topic(configs, {"segment.bytes": "2000000"}, ALL))
    assert [(synonym.name, synonym.value) for synonym in described["segment.bytes"].synonyms] == [
        ("segment.bytes", "2000000"),
        ("log.segment.bytes", "3000000"),
        ("log.segment.bytes", "1073741824"),
    ]
    unlisted = {"internal.segment.bytes", "errors.deadletterqueue.group.enable"}
    assert described.keys() == TopicConfig.keys.keys() - unlisted


def test_an_unknown_override_of_a_topic_is_passed_over() -> None:
    assert "from.the.future" not in by_name(describe_topic(CONFIGS, {"from.the.future": "1"}, ALL))


def test_our_own_config_of_a_topic_says_where_it_comes_from() -> None:
    config = by_name(describe_topic(CONFIGS, {}, ALL))["ottla.acks.all.sync"]
    assert (config.value, config.config_source) == ("true", ConfigSource.DEFAULT)
    config = by_name(describe_topic(CONFIGS, {"ottla.acks.all.sync": "false"}, ALL))["ottla.acks.all.sync"]
    assert (config.value, config.config_source) == ("false", ConfigSource.TOPIC)


def test_a_group_and_a_subscription_are_described() -> None:
    group = by_name(describe_group(CONFIGS, {"consumer.session.timeout.ms": "50000"}, ALL))
    assert group["consumer.session.timeout.ms"].config_source == ConfigSource.GROUP
    assert group["share.isolation.level"].config_source == ConfigSource.DEFAULT
    metrics = by_name(describe_client_metrics({"metrics": "a,b"}, ALL))
    assert metrics["metrics"].config_source == ConfigSource.CLIENT_METRICS
    assert metrics["interval.ms"].value == "300000"


def test_loggers_are_described_with_their_levels() -> None:
    (config,) = describe_loggers({"root": "INFO", "other": "WARN"}, Wanted(frozenset(("root",))))
    assert (config.value, config.config_source) == ("INFO", ConfigSource.DYNAMIC_BROKER_LOGGER)


def test_documentation_comes_when_it_is_asked_for() -> None:
    described = by_name(describe_broker(CONFIGS, ALL))
    assert described["num.partitions"].documentation == NodeConfig.num_partitions.doc
