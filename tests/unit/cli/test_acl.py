"""`ottla acl`: rules as they are typed, and which of them decides."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.typing import fail, run, succeed

from ottla.cli.admin import acl
from ottla.cli.admin.acl import make_rule
from ottla.client.admin.access_rules import Operation, Pattern, Permission, Resource, Rule


class Ruled:
    """A cluster with access rules."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.asked: list[Any] = []
        self.configs: dict[str, str | None] = {"super.users": "User:root"}

    def with_admin(self, _properties: Any, work: Any) -> Any:
        async def listed(principal: str | None = None) -> list[Rule]:
            self.asked.append(principal)
            return [rule for rule in self.rules if principal in (None, rule.principal)]

        async def create(rules: list[Rule]) -> None:
            self.rules += rules

        async def delete(rules: list[Rule]) -> list[Rule]:
            found = [rule for rule in rules if rule in self.rules]
            self.rules = [rule for rule in self.rules if rule not in found]
            return found

        async def describe() -> Any:
            return SimpleNamespace(brokers=(SimpleNamespace(node_id=3),))

        async def configs(_kind: Any, name: str, *, keys: Any) -> Any:
            assert name == "3"
            return {key: SimpleNamespace(value=self.configs[key]) for key in keys if key in self.configs}

        named = SimpleNamespace
        admin = named(
            access_rules=named(list=listed, create=create, delete=delete),
            cluster=named(describe=describe),
            configs=named(describe=configs),
        )

        async def story() -> Any:
            return await work(admin)

        return asyncio.run(story())


@pytest.fixture
def ruled(monkeypatch: pytest.MonkeyPatch) -> Ruled:
    found = Ruled()
    monkeypatch.setattr(acl, "with_admin", found.with_admin)
    return found


def test_a_rule_is_added_listed_and_removed_by_the_same_words(ruled: Ruled) -> None:
    words = ("alice", "write", "topic:ord*", "--host", "10.0.0.1")
    assert succeed("acl", "add", *words).out.startswith("added: ")
    succeed("acl", "add", "User:bob", "READ", "group:g", "--deny")
    assert ruled.rules == [
        Rule(
            "User:alice",
            Operation.WRITE,
            Resource.TOPIC,
            "ord",
            Pattern.PREFIXED,
            Permission.ALLOW,
            "10.0.0.1",
        ),
        Rule("User:bob", Operation.READ, Resource.GROUP, "g", Pattern.LITERAL, Permission.DENY, "*"),
    ]
    assert len(succeed("acl", "list", "--json").data) == 2
    assert len(succeed("acl", "list", "--principal", "bob", "--json").data) == 1
    assert ruled.asked == [None, "User:bob"]
    assert succeed("acl", "remove", *words).out.startswith("removed: ")
    assert "there is no such rule: " in fail("acl", "remove", *words)
    assert len(ruled.rules) == 1
    ruled.rules.clear()
    typed = succeed("acl", "list")
    assert "there are no access rules" in typed.out + typed.err


@pytest.mark.parametrize(
    ("resource", "kind", "name", "pattern"),
    [
        ("topic:a", Resource.TOPIC, "a", Pattern.LITERAL),
        ("topic:*", Resource.TOPIC, "*", Pattern.LITERAL),
        ("topic:a*", Resource.TOPIC, "a", Pattern.PREFIXED),
        ("topic:a:b", Resource.TOPIC, "a:b", Pattern.LITERAL),
        ("group:g", Resource.GROUP, "g", Pattern.LITERAL),
        ("transactional-id:x*", Resource.TRANSACTIONAL_ID, "x", Pattern.PREFIXED),
        ("token:t", Resource.DELEGATION_TOKEN, "t", Pattern.LITERAL),
        ("user:User:u", Resource.USER, "User:u", Pattern.LITERAL),
        ("cluster", Resource.CLUSTER, "kafka-cluster", Pattern.LITERAL),
    ],
)
def test_a_resource_is_a_kind_and_a_name(resource: str, kind: Resource, name: str, pattern: Pattern) -> None:
    rule = make_rule("u", "two-phase-commit", resource, "*", False)
    assert rule == Rule("User:u", Operation.TWO_PHASE_COMMIT, kind, name, pattern, Permission.ALLOW, "*")


@pytest.mark.parametrize("resource", ["topic", "topic:", "cluster:", "table:t", ":t", ""])
def test_what_is_no_resource_is_refused_with_those_there_are(ruled: Ruled, resource: str) -> None:
    typed = run("acl", "add", "u", "read", resource)
    assert typed.code == 2
    assert "is not one of topic:NAME, group:NAME," in " ".join(typed.err.split())
    assert ruled.rules == []


def why(*words: str) -> Any:
    return succeed("acl", "why", *words, "--json").data


def test_the_rule_that_decides_is_told(ruled: Ruled) -> None:
    succeed("acl", "add", "alice", "read", "topic:ord*")
    succeed("acl", "add", "alice", "read", "topic:orders", "--deny", "--host", "10.0.0.9")
    allowed = why("alice", "read", "topic:orders")
    assert (allowed["allowed"], "topic" in allowed["rule"].lower()) == (True, True)
    # A rule that forbids wins, for the clients that it names.
    denied = why("alice", "read", "topic:orders", "--host", "10.0.0.9")
    assert (denied["allowed"], denied["rule"] is not None) == (False, True)
    assert denied["rule"] != allowed["rule"]
    # Who may read may describe, too, and nothing else.
    assert why("alice", "describe", "topic:orders")["allowed"]
    for words in (
        ("alice", "write", "topic:orders"),
        ("bob", "read", "topic:orders"),
        ("alice", "read", "topic:x"),
    ):
        found = why(*words)
        assert (found["allowed"], found["rule"]) == (False, None)
    assert succeed("acl", "why", "alice", "read", "topic:orders").out.startswith("allowed by the rule: ")
    assert succeed("acl", "why", "bob", "read", "topic:orders").out.startswith("denied: ")


def test_super_users_and_clusters_without_rules_are_known(ruled: Ruled) -> None:
    assert why("root", "delete", "topic:t")["allowed"]
    assert not why("bob", "delete", "topic:t")["allowed"]
    ruled.configs["allow.everyone.if.no.acl.found"] = "TRUE"
    assert why("bob", "delete", "topic:t")["allowed"]
    ruled.configs = {"allow.everyone.if.no.acl.found": "false"}
    said = succeed("acl", "why", "root", "delete", "topic:t").out
    assert said.startswith("denied: ")
    assert "The brokers do not show super.users" in said


def test_all_is_no_operation_to_ask_about(ruled: Ruled) -> None:
    assert fail("acl", "why", "u", "all", "topic:t").startswith("`all` is not one operation")
