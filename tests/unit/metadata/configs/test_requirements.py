"""Configs that contradict each other are found."""

import pytest

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.load import STARTING_VALUES
from ottla.metadata.configs.requirements import find_node_problems

STATIC = {**STARTING_VALUES, "log.dirs": "/data"}
SLOW_HEARTBEAT = {
    "group.share.heartbeat.interval.ms": "45000",
    "group.share.max.heartbeat.interval.ms": "45000",
}


def problems(settings: dict[str, str]) -> list[str]:
    return list(find_node_problems(EffectiveConfigs({**STATIC, **settings}).node))


def test_the_starting_values_fulfil_all_requirements() -> None:
    assert problems({}) == []


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"broker.id": "3"}, "broker.id"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.retention.hours": "0"}, "log.retention.ms"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.socket.timeout.ms"),
        ({"replica.lag.time.max.ms": "100"}, "replica.lag.time.max.ms"),
        ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip"),
        ({"max.connections.per.ip.overrides": "here"}, "max.connections.per.ip.overrides"),
        ({"connections.max.idle.ms": "100"}, "connections.max.idle.ms"),
        ({"group.consumer.session.timeout.ms": "44999"}, "group.consumer.min.session.timeout.ms"),
        ({"group.consumer.session.timeout.ms": "60001"}, "group.consumer.max.session.timeout.ms"),
        (SLOW_HEARTBEAT, "group.share.session.timeout.ms"),
        ({"cordoned.log.dirs": "/elsewhere"}, "cordoned.log.dirs"),
        ({"cordoned.log.dirs": "*,/data"}, "cordoned.log.dirs"),
        ({"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9093"}, "different name"),
        ({"listeners": "PLAINTEXT://:9092,SSL://:9092"}, "different port"),
        ({"listeners": "FOO://:9092"}, "FOO"),
        ({"listeners": "nonsense"}, "nonsense"),
        ({"listener.security.protocol.map": "PLAINTEXT:SECRET"}, "SECRET"),
        ({"listener.security.protocol.map": "PLAINTEXT:SSL,plaintext:SSL"}, "two protocols"),
        ({"listeners": "CONTROLLER://:9093"}, "controller.listener.names"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "0.0.0.0"),
        ({"inter.broker.listener.name": "SSL"}, "inter.broker.listener.name"),
        ({"process.roles": "broker", "listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, "process.roles"),
        ({"process.roles": "controller", "listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, "process.roles"),
        ({"process.roles": "broker", "controller.quorum.auto.join.enable": "true"}, "controller.quorum.auto"),
    ],
    ids=str,
)  # fmt: skip
def test_a_contradiction_is_found_and_named(settings: dict[str, str], named: str) -> None:
    found = problems(settings)
    assert any(named in problem for problem in found), found


@pytest.mark.parametrize(
    "settings",
    [
        {"log.retention.ms": "-1"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
        {"queued.max.request.bytes": "-1"},
        {"cordoned.log.dirs": "*"},
        {"listeners": "PLAINTEXT://:0,SSL://:0"},
        {"process.roles": "broker", "controller.quorum.bootstrap.servers": "localhost:9093"},
        {"process.roles": "controller", "listeners": "CONTROLLER://:9093"},
    ],
    ids=str,
)
def test_what_only_looks_like_a_contradiction_is_allowed(settings: dict[str, str]) -> None:
    assert problems(settings) == []
