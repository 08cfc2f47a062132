"""Our own client over TLS and SASL, against an Apache Kafka and a node of ours that ask for them."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from tests.java.apache_kafka import ApacheKafka, free_ports
from tests.support.ottla_node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.admin.credentials import ScramMechanism
from ottla.client.consumer import Consumer
from ottla.client.errors import AuthenticationFailed, NoBrokerReached, UntrustedBroker
from ottla.client.producer import Producer
from ottla.client.properties import InvalidProperty
from ottla.model.ids import TopicPartition

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "se=cr,et ü"
SENTENCE = r"^[^\n]{10,400}$"


class SecureKafka(NamedTuple):
    """Where each listener is, and the files that a client needs."""

    plaintext: str
    addresses: dict[str, str]
    ca: str
    other_ca: str
    certificate: str
    key: str


@pytest.fixture(scope="module", params=["apache-kafka", "ottla"])
def kafka(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[SecureKafka]:
    """A broker with a listener for each security protocol, and one that wants certificates."""
    root = tmp_path_factory.mktemp("secure")
    authority, stranger = trustme.CA(), trustme.CA()
    files = {name: root / name for name in ("ca.pem", "other.pem", "server.pem", "client.pem", "client.key")}
    authority.cert_pem.write_to_path(files["ca.pem"])
    stranger.cert_pem.write_to_path(files["other.pem"])
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("ann@example.org")
    # Kafka reads keys as PKCS #8 only.
    files["server.pem"].write_bytes(_pkcs8(server) + _chain(server))
    files["client.pem"].write_bytes(_chain(client))
    client.private_key_pem.write_to_path(files["client.key"])
    names = ("SSL", "MUTUAL", "SASL_PLAINTEXT", "SASL_SSL")
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(4), strict=True)}
    added = ",".join(f"{name}://{address}" for name, address in addresses.items())
    properties = _properties(files)
    running: ApacheKafka | OttlaNode
    if request.param == "apache-kafka":
        running = ApacheKafka(root)
        running.properties.update(properties)
        for key in ("listeners", "advertised.listeners"):
            running.properties[key] += f",{added}"
    else:
        # Only properties files have escapes.
        settings = {name: text.replace(_escaped(PASSWORD), PASSWORD) for name, text in properties.items()}
        running = OttlaNode(root, {**settings, "listeners": f"PLAINTEXT://127.0.0.1:0,{added}"})
    with running:
        asyncio.run(_create_users(running.bootstrap))
        yield SecureKafka(
            running.bootstrap,
            addresses,
            *(str(files[name]) for name in ("ca.pem", "other.pem", "client.pem", "client.key")),
        )


def _pkcs8(issued: trustme.LeafCert) -> bytes:
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _chain(issued: trustme.LeafCert) -> bytes:
    return b"".join(blob.bytes() for blob in issued.cert_chain_pems)


def _properties(files: dict[str, Path]) -> dict[str, str]:
    plain, scram = (f"org.apache.kafka.common.security.{name}" for name in ("plain", "scram"))
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,MUTUAL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files["server.pem"]),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files["ca.pem"]),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "num.partitions": "1",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = (
            f'{plain}.PlainLoginModule required username="x" password="x" user_ann="{_escaped(PASSWORD)}";'
        )
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{scram}.ScramLoginModule required;"
    return settings


def _escaped(text: str) -> str:
    """Write a text as properties files want it: Java reads them as Latin-1 with escapes."""
    return text.encode("unicode_escape").decode().replace("\\x", "\\u00")


async def _create_users(bootstrap: str) -> None:
    """Give ann a password. Our own hashing of it is on trial, too."""
    async with Admin(bootstrap) as admin:
        for mechanism in ScramMechanism:
            await admin.credentials.set_password("ann", PASSWORD, mechanism)
        async with asyncio.timeout(30):
            while len((await admin.credentials.describe()).succeeded.get("ann", ())) < len(ScramMechanism):
                await asyncio.sleep(0.02)


def _go_round(bootstrap: str, topic: str, **settings: Any) -> None:
    """Send a record and read it back."""

    async def scenario() -> None:
        async with Producer(bootstrap, **settings) as producer:
            await (await producer.send(topic, b"secret"))
        async with Consumer(bootstrap, auto_offset_reset="earliest", **settings) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert (await anext(consumer)).value == b"secret"

    asyncio.run(scenario())


def _connect(bootstrap: str, **settings: Any) -> None:
    async def scenario() -> None:
        async with Admin(bootstrap, **settings):
            pass

    asyncio.run(scenario())


def test_records_go_round_over_tls(kafka: SecureKafka) -> None:
    _go_round(kafka.addresses["SSL"], "tls", security_protocol="SSL", ssl_ca_location=kafka.ca)


def test_records_go_round_with_a_certificate_of_our_own(kafka: SecureKafka) -> None:
    _go_round(
        kafka.addresses["MUTUAL"],
        "mutual",
        security_protocol="SSL",
        ssl_ca_location=kafka.ca,
        ssl_certificate_location=kafka.certificate,
        ssl_key_location=kafka.key,
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_records_go_round_by_password(kafka: SecureKafka, protocol: str, mechanism: str) -> None:
    _go_round(
        kafka.addresses[protocol],
        f"{protocol}-{mechanism}",
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        sasl_username="ann",
        sasl_password=PASSWORD,
        ssl_ca_location=kafka.ca,
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", PASSWORD), ("ann", "")])
def test_a_wrong_password_is_told_in_one_sentence(
    kafka: SecureKafka, mechanism: str, user: str, password: str
) -> None:
    address = kafka.addresses["SASL_PLAINTEXT"]
    with pytest.raises(AuthenticationFailed, match=rf"^{address} refused user '{user}': [^\n]+$"):
        _connect(
            address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_username=user,
            sasl_password=password,
        )


def test_a_stranger_is_not_trusted(kafka: SecureKafka) -> None:
    with pytest.raises(UntrustedBroker, match=r"is not trusted.*check ssl\.ca\.location") as caught:
        _connect(kafka.addresses["SSL"], security_protocol="SSL", ssl_ca_location=kafka.other_ca)
    assert "\n" not in str(caught.value)


def test_the_name_in_the_certificate_must_be_the_one_we_asked_for(kafka: SecureKafka) -> None:
    address = kafka.addresses["SSL"].replace("127.0.0.1", "localhost")
    with pytest.raises(UntrustedBroker, match="'localhost'"):
        _connect(address, security_protocol="SSL", ssl_ca_location=kafka.ca)
    _connect(
        address,
        security_protocol="SSL",
        ssl_ca_location=kafka.ca,
        ssl_endpoint_identification_algorithm="",
    )


def test_a_broker_that_wants_a_certificate_and_gets_none_is_told(kafka: SecureKafka) -> None:
    with pytest.raises(NoBrokerReached, match=SENTENCE):
        _connect(kafka.addresses["MUTUAL"], security_protocol="SSL", ssl_ca_location=kafka.ca)


def test_the_wrong_protocol_is_told(kafka: SecureKafka) -> None:
    with pytest.raises(
        NoBrokerReached, match=r"check that it is a TLS listener|closed the connection before it answered"
    ):
        _connect(kafka.plaintext, security_protocol="SSL", ssl_ca_location=kafka.ca)
    with pytest.raises(NoBrokerReached, match=r"check that its listener uses PLAINTEXT"):
        _connect(kafka.addresses["SSL"])


def test_a_node_without_sasl_says_so(tmp_path: Path) -> None:
    with (
        OttlaNode(tmp_path) as node,
        pytest.raises((AuthenticationFailed, NoBrokerReached), match=SENTENCE),
    ):
        _connect(
            node.bootstrap, security_protocol="SASL_PLAINTEXT", sasl_username="ann", sasl_password="secret"
        )


@pytest.mark.parametrize("content", [None, "this is no certificate"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidProperty, match=r"ssl\.ca\.location: .*ca\.pem cannot be used"):
        Admin("127.0.0.1:1", security_protocol="SSL", ssl_ca_location=str(path))


def test_an_old_tls_is_not_spoken(tmp_path: Path) -> None:
    from ottla.client.admin.settings import AdminSettings
    from ottla.client.security import tls_context

    context = tls_context(AdminSettings.of(bootstrap_servers="127.0.0.1:1", security_protocol="SSL"))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_a_name_that_nobody_has_is_told_in_one_sentence() -> None:
    with pytest.raises(
        NoBrokerReached, match=r"no broker answers at no-such-host\.invalid:9092; check that it is running"
    ):
        _connect("no-such-host.invalid:9092")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_broker_that_never_answers_is_given_up(protocol: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NoBrokerReached, match=rf"{address}.*no answer|got no answer from {address}"):
            _connect(
                address,
                security_protocol=protocol,
                socket_connection_setup_timeout_ms=50,
                request_timeout_ms=50,
            )
