"""Kafka's rules: who decides, which resources a rule is about, and what implies what."""

import pytest

from ottla.security.access_rules import AccessRule, PatternType, Permission, ResourcePattern
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.rights import Operation, ResourceType, Right, bits_of, on_topic
from ottla.security.standard_authorizer import JOURNAL, Reason, StandardAuthorizer

ALICE = Principal("User", "alice")
READ, WRITE, DESCRIBE = (
    on_topic(Operation.READ),
    on_topic(Operation.WRITE),
    on_topic(Operation.DESCRIBE),
)
HOST = "10.0.0.1"


def rule(
    text: str, *, operation: int = Operation.READ, permission: Permission = Permission.ALLOW,
    principal: str = "User:alice", host: str = "*",
) -> AccessRule:  # fmt: skip
    """Return a rule about a topic; `pay*` is a prefix, `*` is every topic."""
    is_prefix = text.endswith("*") and text != "*"
    pattern = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    resource = ResourcePattern(ResourceType.TOPIC, text.rstrip("*") if is_prefix else text, pattern)
    return AccessRule(resource, principal, host, operation, permission)


def authorizer(*rules: AccessRule, super_users: str = "", allows: bool = False) -> StandardAuthorizer:
    made = StandardAuthorizer(super_users, allows_without_rules=allows)
    made.change(enumerate(rules))
    return made


def deny(text: str, **others: object) -> AccessRule:
    return rule(text, permission=Permission.DENY, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "name", "right", "expected"),
    [
        ([], "pay", READ, False),
        ([rule("pay")], "pay", READ, True),
        ([rule("pay")], "payments", READ, False),
        ([rule("pay*")], "payments", READ, True),
        ([rule("pay*")], "pa", READ, False),
        ([rule("*")], "anything", READ, True),
        ([rule("pay")], "pay", WRITE, False),
        ([rule("pay")], "pay", DESCRIBE, True),
        ([rule("pay", operation=Operation.CREATE)], "pay", DESCRIBE, False),
        ([rule("pay", operation=2)], "pay", WRITE, True),
        ([rule("*"), deny("pay*")], "payments", READ, False),
        ([rule("*"), deny("pay*")], "other", READ, True),
        ([rule("*"), deny("*")], "pay", DESCRIBE, True),
        ([rule("*"), deny("*", operation=2)], "pay", DESCRIBE, False),
        ([rule("pay", host="10.0.0.2")], "pay", READ, False),
        ([rule("pay", host=HOST)], "pay", READ, True),
        ([rule("pay", principal="User:*")], "pay", READ, True),
        ([rule("pay", principal="User:bob")], "pay", READ, False),
        ([rule("pay", principal="User:Alice")], "pay", READ, False),
    ],
)
def test_rules_decide(rules: list[AccessRule], name: str, right: Right, expected: bool) -> None:
    made = authorizer(*rules)
    assert made.allows(ALICE, HOST, right, name) is expected
    # Remembered, it is the same.
    assert made.allows(ALICE, HOST, right, name) is expected


def test_super_users_are_above_rules() -> None:
    made = authorizer(deny("*", operation=2, principal="User:*"), super_users="User:bob; User:alice")
    decision = made.decide(ALICE, HOST, READ, "pay")
    assert (decision.is_allowed, decision.reason) == (True, Reason.SUPER_USER)
    assert not made.allows(ANONYMOUS, HOST, READ, "pay")


def test_everyone_is_allowed_only_where_no_rule_is_about_the_resource() -> None:
    made = authorizer(rule("pay*", principal="User:bob"), allows=True)
    assert made.allows(ALICE, HOST, READ, "other")
    assert not made.allows(ALICE, HOST, READ, "payments")


def test_a_decision_names_its_rule() -> None:
    denying = deny("pay", principal="User:*")
    decision = authorizer(rule("*"), denying).decide(ALICE, HOST, READ, "pay")
    assert decision.rule == denying
    assert str(denying) == "DENY User:* from * to READ TOPIC:LITERAL:pay"


def test_changed_rules_hold_at_once_and_have_another_version() -> None:
    made = authorizer(rule("pay"))
    version, audience = made.version, made.audience(ALICE, HOST)
    assert made.allows(ALICE, HOST, READ, "pay")
    made.change([(0, None)])
    assert not made.allows(ALICE, HOST, READ, "pay")
    assert made.version != version
    assert made.audience(ALICE, HOST) != audience


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([rule("pay", operation=Operation.WRITE)], True),
        ([rule("pay", operation=Operation.WRITE), deny("pay", operation=Operation.WRITE)], False),
        ([rule("pay", operation=Operation.WRITE), deny("p*", operation=Operation.WRITE)], False),
        ([rule("pa*", operation=Operation.WRITE), deny("pay*", operation=Operation.WRITE)], True),
        ([rule("*", operation=Operation.WRITE), deny("pay*", operation=Operation.WRITE)], True),
        ([rule("pay", operation=Operation.WRITE), deny("*", operation=Operation.WRITE)], False),
    ],
)
def test_any_resource_will_do(rules: list[AccessRule], expected: bool) -> None:
    assert authorizer(*rules).allows_some(ALICE, HOST, WRITE) is expected


def test_operations_are_a_bit_set() -> None:
    made = authorizer(rule("pay"), rule("pay", operation=Operation.ALTER_CONFIGS))
    assert made.operations(ALICE, HOST, ResourceType.TOPIC, "pay") == bits_of(
        Operation.READ, Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS
    )


def test_decisions_about_names_that_nothing_can_have_are_not_remembered() -> None:
    """A hundred thousand decisions are remembered, and a name in a request may have megabytes."""
    made = authorizer(rule("pay"))
    made.allows(ALICE, HOST, READ, "pay")
    made.allows(ALICE, HOST, READ, "p" * 250)
    assert [name for *_, name in made._remembered] == ["pay"]


class Text(str):
    """A name that counts how often somebody looks at how it begins."""

    looks = 0
    __slots__ = ()

    def startswith(self, *arguments: object) -> bool:
        Text.looks += 1
        return str.startswith(self, *arguments)  # type: ignore[arg-type]

    def __getitem__(self, place: object) -> str:
        Text.looks += 1
        return str.__getitem__(self, place)  # type: ignore[index]


def test_whether_any_resource_will_do_is_found_in_linear_time() -> None:
    many = range(1_000)
    allowing = [rule(f"{number:04}x", operation=Operation.WRITE) for number in many]
    named = [one._replace(resource=one.resource._replace(name=Text(one.resource.name))) for one in allowing]
    denying = [deny(f"{number:04}*", operation=Operation.WRITE) for number in reversed(many)]
    made = authorizer(*named, *denying)
    Text.looks = 0
    assert made.allows_some(ALICE, HOST, WRITE) is False
    assert Text.looks <= 2 * len(many)


@pytest.mark.parametrize("operation", [Operation.READ, Operation.DELETE, Operation.DESCRIBE])
@pytest.mark.parametrize(
    ("resource", "expected"),
    [("*", False), ("_*", False), ("__*", False), ("__ottla_journal", True), ("__ottla_*", True)],
)
def test_the_journal_needs_a_rule_of_its_own(resource: str, operation: Operation, expected: bool) -> None:
    rules = authorizer(rule(resource, operation=2))
    assert rules.allows(ALICE, HOST, on_topic(operation), JOURNAL) is expected
    assert rules.allows(ALICE, HOST, on_topic(operation), "__ottla_other") is (resource != JOURNAL)


def test_a_rule_that_denies_everything_denies_the_journal_as_well() -> None:
    rules = authorizer(rule(JOURNAL), deny("*"))
    assert not rules.allows(ALICE, HOST, on_topic(Operation.READ), JOURNAL)
