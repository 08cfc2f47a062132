"""Our own client over TLS and SASL, against an Apache Kafka and a node of ours that ask for them."""

import asyncio
import base64
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from tests.cli.typing import Typed, run
from tests.clients.conftest import ON_APACHE_KAFKA
from tests.java.apache_kafka import ApacheKafka, free_ports
from tests.java.jars import QUICK_START
from tests.support.identity_provider import AUDIENCE, CLIENT_SECRET, ISSUER, IdentityProvider
from tests.support.ottla_node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.admin.credentials import ScramMechanism
from ottla.client.admin.settings import AdminSettings
from ottla.client.bearer_tokens import BearerTokens
from ottla.client.consumer import Consumer
from ottla.client.errors import AuthenticationFailed, NoBrokerReached, UntrustedBroker
from ottla.client.producer import Producer
from ottla.client.properties import InvalidProperty
from ottla.client.security import cluster_for, tls_context
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.sasl.bearer_tokens import TokenSource

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "se=cr,et ü"
SENTENCE = r"^[^\n]{10,400}$"


class SecureKafka(NamedTuple):
    """Where each listener is, and the files that a client needs."""

    plaintext: str
    addresses: dict[str, str]
    provider: IdentityProvider
    ca: str
    other_ca: str
    certificate: str
    key: str


@pytest.fixture(scope="module", params=[pytest.param("apache-kafka", marks=ON_APACHE_KAFKA), "ottla"])
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
    names = ("SSL", "MUTUAL", "SASL_PLAINTEXT", "SASL_SSL", "BEARER")
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(5), strict=True)}
    provider = IdentityProvider()
    added = ",".join(f"{name}://{address}" for name, address in addresses.items())
    properties = {**_properties(files), **_bearer_properties(provider)}
    running: ApacheKafka | OttlaNode
    if request.param == "apache-kafka":
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.keys_url}"
        running = ApacheKafka(root, java_options=(*QUICK_START, "-Xmx512m", allowed))
        running.properties.update(properties)
        for key in ("listeners", "advertised.listeners"):
            running.properties[key] += f",{added}"
    else:
        # Only properties files have escapes.
        settings = {name: text.replace(_escaped(PASSWORD), PASSWORD) for name, text in properties.items()}
        running = OttlaNode(root, {**settings, "listeners": f"PLAINTEXT://127.0.0.1:0,{added}"})
    with provider, running:
        asyncio.run(_create_users(running.bootstrap))
        yield SecureKafka(
            running.bootstrap,
            addresses,
            provider,
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
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,BEARER:SASL_PLAINTEXT",
        "delegation.token.secret.key": "a key of all nodes",
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


def _bearer_properties(provider: IdentityProvider) -> dict[str, str]:
    java = "org.apache.kafka.common.security.oauthbearer"
    prefix = "listener.name.bearer"
    return {
        f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{java}.OAuthBearerLoginModule required;",
        f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
            f"{java}.OAuthBearerValidatorCallbackHandler"
        ),
        # The broker of Apache Kafka logs in itself, although it does not use this listener.
        f"{prefix}.oauthbearer.sasl.login.callback.handler.class": (
            f"{java}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
        ),
        f"{prefix}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        f"{prefix}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{prefix}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
    }


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


def _bearer(url: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": url,
    }


def test_records_go_round_by_a_token_in_a_file(kafka: SecureKafka, tmp_path: Path) -> None:
    url = kafka.provider.token_file(tmp_path / "token", "ann")
    _go_round(kafka.addresses["BEARER"], "by-file", **_bearer(url))


def test_records_go_round_by_a_token_of_a_provider(kafka: SecureKafka) -> None:
    before = kafka.provider.tokens_given
    _go_round(
        kafka.addresses["BEARER"],
        "by-provider",
        **_bearer(kafka.provider.token_url),
        sasl_oauthbearer_client_credentials_client_id="ann",
        sasl_oauthbearer_client_credentials_client_secret=CLIENT_SECRET,
        sasl_oauthbearer_scope="kafka",
    )
    assert kafka.provider.tokens_given == before + 2, "the connections of a client share a token"


def test_a_session_that_ends_with_its_token_goes_on_with_the_next(
    kafka: SecureKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka.provider, "lifetime_s", 2)

    async def scenario() -> None:
        settings = {
            **_bearer(kafka.provider.token_url),
            "sasl_oauthbearer_client_credentials_client_id": "ann",
            "sasl_oauthbearer_client_credentials_client_secret": CLIENT_SECRET,
            "sasl_oauthbearer_scope": "kafka",
        }
        given = kafka.provider.tokens_given
        async with Producer(kafka.addresses["BEARER"], **settings) as producer:
            sent = 0
            while kafka.provider.tokens_given < given + 4:
                await (await producer.send("short-lived", str(sent).encode(), partition=0))
                sent += 1
                await asyncio.sleep(0.02)
        async with Consumer(kafka.addresses["BEARER"], auto_offset_reset="earliest", **settings) as consumer:
            consumer.assign([TopicPartition("short-lived", 0)])
            values = [(await anext(consumer)).value for _ in range(sent)]
        assert values == [str(number).encode() for number in range(sent)]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "claims",
    [{"aud": "others"}, {"iss": "https://others.example"}, {"exp": 1}, {"sub": None}, {"iat": None}],
)
def test_a_token_that_is_not_for_this_cluster_is_refused(
    kafka: SecureKafka, tmp_path: Path, claims: dict[str, Any]
) -> None:
    path = tmp_path / "token"
    path.write_text(kafka.provider.token("ann", **claims))
    with pytest.raises(AuthenticationFailed, match=r"refused the token: .*invalid_token") as caught:
        _connect(kafka.addresses["BEARER"], **_bearer(path.as_uri()))
    assert path.read_text() not in str(caught.value)


def test_a_token_of_somebody_else_is_refused(kafka: SecureKafka, tmp_path: Path) -> None:
    url = IdentityProvider().token_file(tmp_path / "token", "ann")
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        _connect(kafka.addresses["BEARER"], **_bearer(url))


def test_without_a_token_nobody_is_asked(tmp_path: Path) -> None:
    with pytest.raises(InvalidProperty, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        Admin("127.0.0.1:1", security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER")
    with pytest.raises(AuthenticationFailed, match=r"there is no token for the login: file:.*No such file"):
        _connect_nowhere(_bearer((tmp_path / "missing").as_uri()))


def _connect_nowhere(settings: dict[str, Any]) -> None:
    async def scenario() -> None:
        tokens = BearerTokens(TokenSource(settings["sasl_oauthbearer_token_endpoint_url"]))
        await tokens.current()

    asyncio.run(scenario())


def test_delegation_tokens_are_made_listed_renewed_and_ended(kafka: SecureKafka) -> None:
    login = {
        "bootstrap.servers": kafka.addresses["SASL_SSL"],
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": kafka.ca,
        "sasl.mechanism": "SCRAM-SHA-512",
    }

    def token(*words: str, **others: str) -> Typed:
        properties = {**login, "sasl.username": "ann", "sasl.password": PASSWORD, **others}
        return run("token", *words, *(f"-X{name}={value}" for name, value in properties.items()))

    def known(token_id: str) -> dict[str, Any] | None:
        listed = token("list", "--json")
        return next((row for row in listed.data if row["token"] == token_id), None)

    made = token("create", "--renewer", "bob", "--max-lifetime", "2d", "--json").data
    deadline = time.monotonic() + 60
    while known(made["token"]) is None:
        # The broker learns of it from the metadata log.
        assert time.monotonic() < deadline
    row = known(made["token"])
    assert row is not None
    assert (row["owner"], row["requester"], row["renewers"]) == ("User:ann", "User:ann", ["User:bob"])
    assert "password" not in row
    by_token = {"sasl.username": made["token"], "sasl.password": made["password"], "sasl.tokenauth": "true"}
    refused = token("create", **by_token)
    assert refused.code == 1
    assert "cannot create a delegation token" in refused.err
    renewed = token("renew", made["token"], "--for", "1h", "--json")
    assert abs(renewed.data["expires_at_ms"] / 1000 - time.time() - 3_600) < 600
    assert token("renew", made["token"], "--for", "3600").code == 2
    assert "there is no token nosuch that you may see" in token("renew", "nosuch").err
    assert token("expire", made["token"], "--yes").out == f"ended token {made['token']}\n"
    while known(made["token"]) is not None:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_records_go_round_by_a_delegation_token(kafka: SecureKafka, mechanism: str) -> None:
    login = {"security_protocol": "SASL_SSL", "ssl_ca_location": kafka.ca, "sasl_mechanism": mechanism}
    address = kafka.addresses["SASL_SSL"]

    async def make_token() -> CreateDelegationTokenResponse:
        cluster = cluster_for(
            AdminSettings.of(
                {}, bootstrap_servers=address, sasl_username="ann", sasl_password=PASSWORD, **login
            )
        )
        await cluster.start()
        token = await cluster.ask_any(CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1))
        assert isinstance(token, CreateDelegationTokenResponse)
        # The broker learns of it from the metadata log.
        known: set[str] = set()
        async with asyncio.timeout(30):
            while token.token_id not in known:
                described = await cluster.ask_any(DescribeDelegationTokenRequest(owners=None))
                known = {one.token_id for one in described.tokens}
        await cluster.close()
        return token

    token = asyncio.run(make_token())
    assert token.error_code is ErrorCode.NONE
    _go_round(
        address,
        f"by-delegation-token-{mechanism}",
        sasl_username=token.token_id,
        sasl_password=base64.b64encode(token.hmac).decode(),
        sasl_tokenauth=True,
        **login,
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
