"""The consumer's properties, by Kafka's names."""

import pytest

from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.fetching import IsolationLevel
from ottla.client.properties import InvalidProperty


def _settings(**settings: object) -> ConsumerSettings:
    return ConsumerSettings.of({"bootstrap.servers": "localhost"}, **settings)


def test_a_properties_file_of_java_is_taken_as_it_is() -> None:
    settings = ConsumerSettings.of(
        {
            "bootstrap.servers": "a:1,b:2",
            "group.id": "g",
            "max.poll.records": "10",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        }
    )
    assert settings.max_poll_records == 10
    assert not settings.enable_auto_commit
    assert settings.isolation is IsolationLevel.READ_COMMITTED
    assert [assignor.name for assignor in settings.assignors] == ["cooperative-sticky"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("none", "none"),
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
    ],
)
def test_reset_policies(text: str, expected: str | int) -> None:
    assert _settings(auto_offset_reset=text).reset_policy == expected


@pytest.mark.parametrize("text", ["sometimes", "by_duration:", "by_duration:P", "by_duration:1h"])
def test_a_reset_policy_that_does_not_exist_is_told(text: str) -> None:
    with pytest.raises(InvalidProperty, match=r"auto\.offset\.reset is"):
        _settings(auto_offset_reset=text)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"partition_assignment_strategy": "rnage"}, "unknown rnage"),
        ({"group_instance_id": "i"}, "needs a group.id"),
        ({"heartbeat_interval_ms": 9, "session_timeout_ms": 9}, "less than session.timeout.ms"),
        ({"group_protocol": "share"}, "must be one of 'classic', 'consumer'"),
        ({"max_poll_record": 1}, "did you mean 'max.poll.records'"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidProperty, match=sentence):
        _settings(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"session_timeout_ms": 6000}, "session.timeout.ms has no effect .* consumer.session.timeout.ms"),
        ({"heartbeat.interval.ms": "200"}, "heartbeat.interval.ms has no effect"),
        ({"partition_assignment_strategy": "range"}, "set group.remote.assignor"),
    ],
)
def test_what_the_broker_decides_is_refused_in_the_newer_protocol(
    settings: dict[str, object], message: str
) -> None:
    _settings(**settings)
    with pytest.raises(InvalidProperty, match=message):
        _settings(group_protocol="consumer", **settings)


def test_an_assignor_of_the_broker_is_refused_in_classic_groups() -> None:
    _settings(group_protocol="consumer", group_remote_assignor="range")
    with pytest.raises(InvalidProperty, match=r"set partition\.assignment\.strategy"):
        _settings(group_remote_assignor="range")
