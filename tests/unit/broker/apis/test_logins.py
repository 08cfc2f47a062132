"""What a plain listener answers to clients that want to log in. Expected: what Apache Kafka 4.3.1 answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.in_process import InProcessClient, in_process_node

from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InProcessClient]:
    with in_process_node(tmp_path, {}) as node:
        yield InProcessClient(node)


@pytest.mark.parametrize(
    ("key", "request_"),
    [
        (ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN")),
        (ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")),
    ],
)
def test_a_client_that_logs_in_is_told_that_there_is_no_login(
    client: InProcessClient, key: ApiKey, request_: Any
) -> None:
    for version in api_of(key).versions.all:
        assert client.ask(request_, version).error_code is ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    ("key", "request_"),
    [
        (ApiKey.CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=1)),
        (ApiKey.RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=1)),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=1)),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest(owners=None)),
    ],
)
def test_nobody_who_did_not_log_in_has_to_do_with_tokens(
    client: InProcessClient, key: ApiKey, request_: Any
) -> None:
    for version in api_of(key).versions.all:
        assert client.ask(request_, version).error_code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_refused_token_names_its_owner_and_who_asked(client: InProcessClient) -> None:
    ask = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="alice", renewers=(), max_lifetime_ms=1
    )
    answer = client.ask(ask)
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")
    assert answer.token_requester_principal_name == "ANONYMOUS"
    own = client.ask(CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=1), version=1)
    assert (own.principal_type, own.principal_name) == ("User", "ANONYMOUS")
