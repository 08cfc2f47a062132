"""A delegation token is a password for as long as it lives, and not until somebody has cleaned up."""

import base64
import random
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.login.mechanisms import make_mechanisms
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.image import EMPTY_IMAGE
from ottla.security.delegation_tokens import TokenKeys
from ottla.security.sasl.mechanism import Identity, LoginFailed
from ottla.wire.metadata_records.delegation_tokens import DelegationTokenRecord
from ottla.wire.sasl.login import ScramLogin

MECHANISM = "SCRAM-SHA-512"
NOW_MS = 1_000_000
KEYS = TokenKeys("a key of all nodes")
CONFIG = ListenerConfig(load_node_config(b"", {"sasl.enabled.mechanisms": MECHANISM}).configs, "PLAINTEXT")


def log_in(expires_ms: int, max_ms: int, *, is_token: bool = True) -> Identity | None:
    token = DelegationTokenRecord(
        owner="User:alice",
        requester="User:alice",
        renewers=(),
        issue_timestamp=0,
        max_timestamp=max_ms,
        expiration_timestamp=expires_ms,
        token_id="t",
    )
    world: Any = SimpleNamespace(
        clock=SimpleNamespace(now_ms=lambda: NOW_MS),
        random=random.Random(1),
        token_keys=KEYS,
        disguise_key=b"key",
        image=EMPTY_IMAGE._replace(tokens={"t": token}),
    )
    conversation = make_mechanisms(CONFIG, world)[MECHANISM].begin()
    password = base64.b64encode(KEYS.hmac("t")).decode()
    login = ScramLogin(MECHANISM, "t", password, "nonce", is_token=is_token)
    challenge = conversation.receive(login.first())
    final = login.receive(challenge.token)
    assert final is not None
    return conversation.receive(final).identity


def test_a_token_logs_its_owner_in_until_it_expires() -> None:
    identity = log_in(NOW_MS + 5_000, NOW_MS + 9_000)
    assert identity == Identity("alice", NOW_MS + 5_000, is_by_token=True)


@pytest.mark.parametrize(("expires_ms", "max_ms"), [(NOW_MS - 1, NOW_MS + 1), (NOW_MS + 1, NOW_MS - 1)])
def test_a_token_that_has_expired_is_refused_before_it_is_removed(expires_ms: int, max_ms: int) -> None:
    with pytest.raises(LoginFailed, match="wrong user or password"):
        log_in(expires_ms, max_ms)


def test_a_token_is_no_user() -> None:
    with pytest.raises(LoginFailed):
        log_in(NOW_MS + 5_000, NOW_MS + 9_000, is_token=False)
