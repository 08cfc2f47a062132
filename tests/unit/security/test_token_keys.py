"""The secrets of delegation tokens are made again from their ids, and not all of them are remembered."""

import pytest

from ottla.security import delegation_tokens
from ottla.security.delegation_tokens import TokenKeys, TokensBySecret


def test_secrets_are_the_same_for_each_node_with_the_same_key() -> None:
    first, second, other = TokenKeys("key"), TokenKeys("key"), TokenKeys("another")
    assert first.hmac("t") == second.hmac("t")
    assert len({first.hmac("t"), first.hmac("u"), other.hmac("t")}) == 3
    assert first.credential("t", "SCRAM-SHA-256") == second.credential("t", "SCRAM-SHA-256")
    assert first.credential("t", "SCRAM-SHA-256") != first.credential("t", "SCRAM-SHA-512")


def test_so_many_credentials_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "CREDENTIALS_MAX", 2)
    keys = TokenKeys("key")
    first, second = (keys.credential(name, "SCRAM-SHA-256") for name in "ab")
    assert keys.credential("a", "SCRAM-SHA-256") is first
    assert keys.credential("b", "SCRAM-SHA-256") is second
    keys.credential("c", "SCRAM-SHA-256")
    again = keys.credential("a", "SCRAM-SHA-256")
    assert again == first
    assert again is not first, "a peer that names many tokens must not fill the memory"


def test_tokens_are_found_by_their_secrets_and_forgotten_when_they_are_gone() -> None:
    keys, found = TokenKeys("key"), TokensBySecret("key")
    names = [f"token-{number}" for number in range(3_000)]
    assert [found.find(names, keys.hmac(name)) for name in names[:3]] == names[:3]
    assert found.find(names, b"") is found.find(names, TokenKeys("other").hmac(names[0])) is None
    assert found.find(names[1:], keys.hmac(names[0])) is None
    assert found.find(["new"], keys.hmac("new")) == "new"
    assert len(found._ids) == 1
