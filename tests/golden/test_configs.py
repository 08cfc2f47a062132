"""Our declarations are Apache Kafka's definitions: the same configs, types, defaults, bounds and modes."""

from typing import Any

import pytest
from tests.golden.configs import Definition, definitions

from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.declare import ConfigKey, Required
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.ottla import DeadLetterGroupConfigs, OttlaConfigs, OttlaTopicConfigs
from ottla.metadata.configs.quota import QuotaConfig
from ottla.metadata.configs.rules import DistinctList
from ottla.metadata.configs.topic import TopicConfig

DECLARED = {
    "broker": NodeConfig.keys,
    "broker-throttle": NodeConfig.keys,
    "client-metrics": ClientMetricsConfig.keys,
    "group": GroupConfig.keys,
    "ip-quota": QuotaConfig.keys,
    "topic": TopicConfig.keys,
    "user-quota": QuotaConfig.keys,
}


OURS = (OttlaConfigs, OttlaTopicConfigs, DeadLetterGroupConfigs)
OF_THE_NEXT_KAFKA = "errors.deadletterqueue."


def test_the_table_has_every_config_of_kafka() -> None:
    assert len(definitions()) == 424


@pytest.mark.parametrize("golden", [row for row in definitions() if row.scope != "authorizer"], ids=str)
def test_a_config_is_declared_as_kafka_defines_it(golden: Definition) -> None:
    key = DECLARED[golden.scope][golden.name]
    assert declared(key, golden) == golden


@pytest.mark.parametrize("golden", [row for row in definitions() if row.scope == "authorizer"], ids=str)
def test_a_config_of_the_authorizer_is_declared_as_a_plugins(golden: Definition) -> None:
    assert NodeConfig.keys[golden.name].plugin


def test_nothing_is_declared_that_kafka_does_not_have_except_under_our_own_prefix() -> None:
    for keys in (
        NodeConfig.keys,
        TopicConfig.keys,
        GroupConfig.keys,
        ClientMetricsConfig.keys,
        QuotaConfig.keys,
    ):
        known = {row.name for row in definitions() if DECLARED.get(row.scope, NodeConfig.keys) is keys}
        assert keys.keys() - known <= {name for one in OURS for name in one.keys}
    assert all(name.startswith(("ottla.", OF_THE_NEXT_KAFKA)) for one in OURS for name in one.keys)


def test_a_group_takes_what_it_does_not_set_from_the_broker_config_of_its_name() -> None:
    for name, key in GroupConfig.keys.items():
        expected = f"group.{name}"
        assert key.broker_key == (expected if expected in NodeConfig.keys else None)


def declared(key: ConfigKey[Any], golden: Definition) -> Definition:
    """Write a declaration down as the table does."""
    return Definition(
        scope=golden.scope,
        name=key.name,
        type=key.type.name,
        default=described_default(key),
        valid=described_rule(key),
        update=key.update.value,
        importance=key.importance.value,
        internal=str(key.internal).lower(),
        broker_key=(key.broker_key or "") if golden.scope == "topic" else "",
    )


def described_default(key: ConfigKey[Any]) -> str:
    if isinstance(key.default, Required):
        return "<required>"
    text = key.format_default()
    return "<null>" if text is None else text


def described_rule(key: ConfigKey[Any]) -> str:
    rule = key.rule
    if not isinstance(rule, DistinctList):
        return "" if rule is None else str(rule)
    allowed = ", ".join(rule.allowed).join("[]")
    return f"distinct {allowed}{' or empty' * rule.may_be_empty}{' or null' * rule.may_be_null}"
