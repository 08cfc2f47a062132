"""Users, rules, tokens and quotas hold when Apache Kafka opens our directory, and when we take it back."""

import base64
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.support.data_plane import batch_of, create_topic, fetch_request, produce_request
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.client.admin.access_rules import Operation, Pattern, Permission, Resource, Rule
from ottla.client.admin.quotas import entity
from ottla.client.sync import Admin
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.testing.ports import free_port
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from ottla.wire.sasl.login import ScramLogin

MECHANISM = "SCRAM-SHA-512"
BYTES_PER_SECOND = 1000
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class Account(NamedTuple):
    """Somebody who may write to topics with a prefix, and may not read them."""

    user: str
    password: str
    topic: str
    token_id: str
    token_password: str


def settings(listener: str) -> dict[str, str]:
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.login.{MECHANISM.lower()}.sasl.jaas.config": JAAS,
        "authorizer.class.name": CLASS_NAME,
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "a key of all nodes",
        "listeners": f"PLAINTEXT://127.0.0.1:0,LOGIN://{listener}",
    }


def try_login(client: PlainClient, user: str, password: str, *, is_token: bool = False) -> ErrorCode:
    """Log in, and return how that ended."""
    login = ScramLogin(MECHANISM, user, password, "a-nonce", is_token=is_token)
    client.ask(SaslHandshakeRequest(mechanism=MECHANISM), 1)
    token: bytes | None = login.first()
    while token is not None:
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code is not ErrorCode.NONE:
            return ErrorCode(answer.error_code)
        token = login.receive(answer.auth_bytes)
    return ErrorCode.NONE


def make_account(bootstrap: str, listener: str, user: str) -> Account:
    """Make a user with rights, a quota and a token."""
    password, topic = f"{user}-secret", f"{user}-topic"
    with Admin(bootstrap) as admin:
        admin.credentials.set_password(user, password)
        who = f"User:{user}"
        allow, deny = Permission.ALLOW, Permission.DENY
        rules = [
            Rule(who, Operation.ALL, Resource.TOPIC, f"{user}-", Pattern.PREFIXED, allow),
            Rule(who, Operation.READ, Resource.TOPIC, topic, Pattern.LITERAL, deny),
        ]
        admin.access_rules.create(rules)
        admin.quotas.alter(entity(user=user), {"producer_byte_rate": BYTES_PER_SECOND})
    with PlainClient(bootstrap) as client:
        create_topic(client, topic)
    give_up = time.monotonic() + 60
    while True:
        with PlainClient(listener) as client:
            # Apache Kafka learns of a new user a little later than it answers.
            if try_login(client, user, password) is ErrorCode.NONE:
                token = client.ask(CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1))
                assert token.error_code is ErrorCode.NONE
                break
        assert time.monotonic() < give_up
    return Account(user, password, topic, token.token_id, base64.b64encode(token.hmac).decode())


def check_account(listener: str, account: Account) -> None:
    """See that all of it holds."""
    with PlainClient(listener) as client:
        assert try_login(client, account.user, "wrong") is ErrorCode.SASL_AUTHENTICATION_FAILED
    with PlainClient(listener) as client:
        # Without the extension a token is no user.
        refused = try_login(client, account.token_id, account.token_password)
        assert refused is ErrorCode.SASL_AUTHENTICATION_FAILED
    with PlainClient(listener) as client:
        assert try_login(client, account.token_id, account.token_password, is_token=True) is ErrorCode.NONE
        assert written(client, account.topic) is ErrorCode.NONE, "the token has the rights of its owner"
    with PlainClient(listener) as client:
        assert try_login(client, account.user, account.password) is ErrorCode.NONE
        assert written(client, "somebody-elses") is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        fetched = client.ask(fetch_request(account.topic, 0), 12)
        [partition] = fetched.responses[0].partitions
        assert partition.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED, "to deny wins over to allow"
        request = produce_request(account.topic, batch_of(b"x" * BYTES_PER_SECOND * 20))
        assert client.ask(request, 9).throttle_time_ms > 0


def written(client: PlainClient, topic: str) -> ErrorCode:
    answer = client.ask(produce_request(topic, batch_of(b"x")), 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.thorough(guard="tests/golden/test_metadata_logs.py")
def test_security_goes_there_and_back(tmp_path: Path) -> None:
    data, listener = tmp_path / "data", f"127.0.0.1:{free_port()}"
    with OttlaNode(tmp_path / "ottla", settings(listener), data_directory=data) as node:
        alice = make_account(node.bootstrap, listener, "alice")
        check_account(listener, alice)
    kafka = ApacheKafka(tmp_path / "kafka", data_directory=data)
    plain = kafka.properties["listeners"]
    kafka.properties |= settings(listener)
    kafka.properties["listeners"] = kafka.properties["advertised.listeners"] = f"{plain},LOGIN://{listener}"
    with kafka:
        check_account(listener, alice)
        carol = make_account(kafka.bootstrap, listener, "carol")
    with OttlaNode(tmp_path / "ottla", settings(listener), data_directory=data):
        for account in (alice, carol):
            check_account(listener, account)
