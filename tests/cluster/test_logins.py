"""What a node does with clients that log in, and with those that do not: byte by byte, over a socket."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.testing.ports import free_port
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
DELAY_MS = 300
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


class SaslNode(OttlaNode):
    """A node with a listener for logins. Those that expire are tried in simulated time."""

    def __init__(self, root: Any) -> None:
        self.sasl_port = free_port()
        users = f'{PLAIN} user_alice="alice-secret" user_bob="bob-secret";'
        super().__init__(
            root,
            {
                "listeners": f"PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:{self.sasl_port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,"
                "CONTROLLER:PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl.plain.sasl.jaas.config": users,
                "connection.failed.authentication.delay.ms": str(DELAY_MS),
                "sasl.server.max.receive.size": "20000",
                "delegation.token.secret.key": "a key of tests",
            },
        )

    def client(self) -> PlainClient:
        return PlainClient(f"127.0.0.1:{self.sasl_port}")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    with SaslNode(tmp_path_factory.mktemp("node")) as node:
        yield node


def log_in(client: PlainClient, user: str = "alice", password: str | None = None) -> Any:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN")).error_code is ErrorCode.NONE
    token = f"\0{user}\0{password or user + '-secret'}".encode()
    return client.ask(SaslAuthenticateRequest(auth_bytes=token))


def assert_closed(client: PlainClient) -> None:
    with pytest.raises((ConnectionError, AssertionError, EOFError)):
        client.receive()


def test_a_client_that_has_logged_in_is_served(node: SaslNode) -> None:
    with node.client() as client:
        assert client.ask(HELLO).error_code is ErrorCode.NONE
        answer = log_in(client)
        assert (answer.error_code, answer.session_lifetime_ms) == (ErrorCode.NONE, 0)
        assert client.ask(MetadataRequest(topics=None)).brokers
        # A second handshake is out of place where logins do not expire.
        again = client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        assert again.error_code is ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    "requests",
    [
        [MetadataRequest(topics=None)],
        [HELLO, HELLO],
        [HELLO, MetadataRequest(topics=None)],
        [SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")],
    ],
)
def test_whoever_has_not_logged_in_gets_no_answer(node: SaslNode, requests: list[Any]) -> None:
    with node.client() as client:
        for request in requests[:-1]:
            client.ask(request)
        client.send(requests[-1])
        assert_closed(client)


def test_an_unknown_version_of_api_versions_may_be_tried_again(node: SaslNode) -> None:
    with node.client() as client:
        head = (18).to_bytes(2) + (99).to_bytes(2) + (7).to_bytes(4) + b"\xff\xff"
        client._socket.sendall(len(head).to_bytes(4) + head)
        assert client.receive_frame()[4:6] == b"\0\x23"
        assert client.ask(HELLO).error_code is ErrorCode.NONE
        assert log_in(client).error_code is ErrorCode.NONE


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(node: SaslNode) -> None:
    with node.client() as client:
        answer = client.ask(SaslHandshakeRequest(mechanism="GSSAPI"))
        assert answer.error_code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ("PLAIN",)
        assert_closed(client)


def test_a_failed_login_is_answered_late_and_closed(node: SaslNode) -> None:
    with node.client() as client:
        started = time.monotonic()
        answer = log_in(client, "alice", "wrong")
        assert answer.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "Authentication failed: Invalid username or password"
        # Only a lower bound: a busy machine may take longer.
        assert time.monotonic() - started >= DELAY_MS / 1000
        assert_closed(client)
    assert "alice-secret" not in node.read_log()
    assert "wrong user or password for 'alice'" in node.read_log()


def test_another_request_instead_of_a_token_is_refused_in_its_own_form(node: SaslNode) -> None:
    with node.client() as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        answer = client.ask(DescribeDelegationTokenRequest(owners=None))
        assert answer.error_code is ErrorCode.ILLEGAL_SASL_STATE
        assert_closed(client)


def test_tokens_without_headers_follow_the_oldest_handshake(node: SaslNode) -> None:
    with node.client() as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        token = b"\0alice\0alice-secret"
        client._socket.sendall(len(token).to_bytes(4) + token)
        assert client.receive_frame() == b""
        assert client.ask(MetadataRequest(topics=None)).brokers


def test_a_large_frame_before_the_login_closes_the_connection(node: SaslNode) -> None:
    with node.client() as client:
        client._socket.sendall((20_001).to_bytes(4) + b"\0")
        assert client._socket.recv(1) == b""
    with node.client() as client:
        log_in(client)
        topics = tuple(MetadataRequestTopic(name=f"topic-{number:020}") for number in range(1_000))
        answer = client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        assert len(answer.topics) == len(topics)


def test_a_token_is_made_renewed_shown_and_ended(node: SaslNode) -> None:
    with node.client() as client, node.client() as other:
        log_in(client)
        log_in(other, "bob")
        renewers = (CreatableRenewers(principal_type="User", principal_name="bob"),)
        made = client.ask(CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1))
        assert made.error_code is ErrorCode.NONE
        assert (made.principal_name, len(made.hmac), len(made.token_id)) == ("alice", 64, 22)
        for one in (client, other):
            (described,) = one.ask(DescribeDelegationTokenRequest(owners=None)).tokens
            assert described.hmac == made.hmac
        renewed = other.ask(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=60_000))
        assert renewed.error_code is ErrorCode.NONE
        assert renewed.expiry_timestamp_ms < made.expiry_timestamp_ms
        gone = client.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1))
        assert gone.error_code is ErrorCode.NONE
        again = client.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1))
        assert again.error_code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_silent_and_half_open_peers_do_not_keep_others_from_logging_in(node: SaslNode) -> None:
    silent = [socket.create_connection(("127.0.0.1", node.sasl_port)) for _ in range(300)]
    try:
        for one in silent[::2]:
            one.sendall(b"\0\0\0\x20\0")
        with node.client() as client:
            assert log_in(client).error_code is ErrorCode.NONE
    finally:
        for one in silent:
            one.close()
