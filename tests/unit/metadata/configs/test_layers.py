"""Stronger layers win, and what cannot be used is passed over."""

import pytest

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.layers import BrokerLayers, broker_layers, is_usable
from ottla.metadata.configs.load import STARTING_VALUES
from ottla.metadata.configs.synonyms import broker_synonyms, time_synonyms

STATIC = {**STARTING_VALUES, "log.dirs": "/data"}


def test_one_brokers_configs_win_over_all_brokers_and_those_over_the_file() -> None:
    name = "log.cleaner.backoff.ms"
    layers = BrokerLayers({name: "1"}, {name: "2"}, {name: "3"})
    assert layers.merged() == {name: "3"}
    assert layers._replace(dynamic_broker={}).merged() == {name: "2"}


def test_a_time_set_in_one_unit_replaces_it_in_every_unit() -> None:
    layers = BrokerLayers(
        {"log.retention.ms": "5", "log.retention.hours": "1"}, {"log.retention.minutes": "2"}
    )
    assert layers.merged() == {"log.retention.minutes": "2"}
    configs = EffectiveConfigs({**STATIC, "log.retention.hours": "72"}, {"log.retention.ms": "1000"})
    assert configs.node.retention_ms == 1000
    assert configs.node.log_retention_hours == 168


@pytest.mark.parametrize(
    ("name", "text", "for_one_broker", "usable"),
    [
        ("log.cleaner.threads", "2", False, True),
        ("log.cleaner.threads", "x", False, False),
        ("num.partitions", "2", True, False),
        ("sasl.enabled.mechanisms", "PLAIN", True, True),
        ("sasl.enabled.mechanisms", "PLAIN", False, False),
        ("ssl.keystore.location", "/x", True, False),
        ("listener.name.plain.ssl.keystore.location", "/x", True, True),
        ("listener.name.plain.ssl.keystore.location", "/x", False, False),
        ("listener.name.plain.max.connections", "5", False, True),
        ("listener.name.plain.max.connections", "x", False, False),
        ("something.else", "x", False, True),
        ("super.users", "User:x", True, True),
        ("leader.replication.throttled.rate", "5", False, True),
    ],
)
def test_an_override_takes_effect_only_where_kafka_lets_it(
    name: str, text: str, for_one_broker: bool, usable: bool
) -> None:
    assert is_usable(name, text, for_one_broker=for_one_broker) is usable


def test_unusable_overrides_leave_the_layer_below_in_force() -> None:
    layers = broker_layers({}, {"num.partitions": "9", "log.cleaner.threads": "x"}, {"node.id": "9"})
    assert layers == BrokerLayers({}, {}, {})


def test_synonyms_are_listed_the_most_special_first() -> None:
    assert time_synonyms("log.retention.hours") == (
        "log.retention.ms", "log.retention.minutes", "log.retention.hours",
    )  # fmt: skip
    assert time_synonyms("log.flush.interval.ms")[1:] == ("log.flush.scheduler.interval.ms",)
    assert time_synonyms("log.flush.scheduler.interval.ms") == ("log.flush.scheduler.interval.ms",)
    assert broker_synonyms("listener.name.a.ssl.protocol") == ("listener.name.a.ssl.protocol", "ssl.protocol")
    assert broker_synonyms("listener.name.a.plain.sasl.jaas.config")[1] == "sasl.jaas.config"
    assert broker_synonyms("num.io.threads") == ("num.io.threads",)
