"""Client properties by Kafka's names and by ours."""

from pathlib import Path

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
        ({"linger_ms": float("nan")}, "linger.ms is nan: it must be a whole number"),
        ({"linger_ms": 0.5}, "must be a whole number"),
        ({"linger_ms": None}, "must be a whole number"),
        ({"linger_ms": True}, "must be a whole number"),
        ({"enable_idempotence": 1}, "must be true or false"),
        ({"acks": 2}, "must be one of"),
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


def test_numbers_that_are_names_may_be_numbers() -> None:
    for acks, required in ((0, 0), (1, 1), (-1, -1), ("all", -1)):
        assert ProducerSettings.of(bootstrap_servers="a:1", acks=acks).required_acks == required
    linger_ms = ProducerSettings.of(bootstrap_servers="a:1", linger_ms=5.0).linger_ms
    assert (type(linger_ms), linger_ms) == (int, 5)


def test_a_missing_address_says_what_to_write() -> None:
    with pytest.raises(InvalidProperty, match="give the address of a broker"):
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


def _file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "client.properties"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kind", [Path, str])
def test_a_file_is_read_as_kafkas_clients_read_it(
    tmp_path: Path, kind: type, caplog: pytest.LogCaptureFixture
) -> None:
    path = _file(
        tmp_path,
        "# ours",
        "bootstrap.servers = kafka-1:9093, kafka-2:9093",
        "linger.ms=7 ",
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer",
        "security.protocol=SASL_SSL",
        "sasl.mechanism=SCRAM-SHA-512",
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\",
        '  username="ann" password="se\\\\"cret;";',
        "ssl.truststore.type=PEM",
        "ssl.truststore.location=/etc/ca.pem",
    )
    settings = ProducerSettings.of(kind(path), linger_ms=9)
    assert settings.bootstrap_servers == (Address("kafka-1", 9093), Address("kafka-2", 9093))
    assert (settings.linger_ms, settings.security_protocol) == (9, "SASL_SSL")
    assert (settings.sasl_username, settings.sasl_password) == ("ann", 'se"cret;')
    assert settings.ssl_ca_location == "/etc/ca.pem"
    assert [record.message for record in caplog.records] == [f"{path}: this client ignores key.serializer"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ssl.truststore.location=/etc/trust.jks", "in the format JKS.*set ssl.ca.location to that file"),
        ("sasl.jaas.config=com.sun.Krb5LoginModule required;", "use PLAIN, SCRAM or OAUTHBEARER"),
        ("linger.ms=soon", "linger.ms is 'soon'"),
        ("client.id=\\u12", "cannot read .*client.properties: line 2: a .u without four hexadecimal"),
    ],
)
def test_what_a_file_asks_for_in_vain_is_told(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InvalidProperty, match=message):
        ProducerSettings.of(_file(tmp_path, "bootstrap.servers=a:1", line))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidProperty, match=r"cannot read .*nowhere: No such file"):
        ProducerSettings.of(tmp_path / "nowhere")
