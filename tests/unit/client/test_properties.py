"""Client properties by Kafka's names and by ours."""

import pytest

from ottla.client.connection import Address
from ottla.client.producer.settings import ProducerSettings
from ottla.client.properties import InvalidProperty, parse_address


def test_kafka_names_and_ours_mean_the_same() -> None:
    theirs = ProducerSettings.of(
        {"bootstrap.servers": "a:1,b:2", "linger.ms": "7", "enable.idempotence": "true"}
    )
    ours = ProducerSettings.of(bootstrap_servers="a:1,b:2", linger_ms=7, enable_idempotence=True)
    assert theirs == ours
    assert ours.bootstrap_servers == (Address("a", 1), Address("b", 2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"linger_mss": 5}, "did you mean 'linger.ms'"),
        ({"linger_ms": -1}, "must be at least 0"),
        ({"acks": "2"}, "must be one of"),
        ({"linger.ms": "soon"}, "linger.ms is 'soon': it must be a (whole )?number"),
        ({"enable.idempotence": "perhaps"}, "it must be true or false"),
        ({"bootstrap.servers": "a:x"}, "^bootstrap.servers: 'a:x' is not an address"),
        ({"transactional_id": "t", "acks": "1"}, "transactional.id needs acks=all"),
        ({"max_in_flight_requests_per_connection": 6}, "must be at most 5"),
        ({"delivery_timeout_ms": 1000}, "at least linger.ms"),
    ],
)
def test_a_wrong_setting_says_what_is_allowed(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidProperty, match=message):
        ProducerSettings.of({"bootstrap.servers": "a:1", **settings})


def test_a_missing_address_says_what_to_write() -> None:
    with pytest.raises(InvalidProperty, match="say where a broker listens"):
        ProducerSettings.of({})


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("broker:1234", Address("broker", 1234)),
        ("broker", Address("broker", 9092)),
        ("[::1]:9093", Address("::1", 9093)),
        ("[::1]", Address("::1", 9092)),
    ],
)
def test_addresses_are_read(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":1", "a:0", "a:x", "a:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidProperty, match="is not an address"):
        parse_address(text)


def test_a_password_does_not_show_in_the_settings() -> None:
    settings = ProducerSettings.of(bootstrap_servers="a:1", sasl_password="secret")
    assert "secret" not in repr(settings)
