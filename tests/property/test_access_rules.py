"""Rules come and go in any order: what holds is what a plain list of those that are left says."""

from collections.abc import Iterable
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from ottla.security.access_rules import ALL_OPERATIONS, AccessRule, PatternType, Permission, ResourcePattern
from ottla.security.principal import Principal
from ottla.security.rights import Operation, ResourceType, on_topic
from ottla.security.standard_authorizer import StandardAuthorizer

NAMES: Final = ("a", "ab", "abc", "b", "*")
PRINCIPALS: Final = ("User:alice", "User:bob", "User:*")
HOSTS: Final = ("*", "10.0.0.1", "10.0.0.2")
OPERATIONS: Final = (ALL_OPERATIONS, Operation.READ, Operation.WRITE, Operation.DESCRIBE)

rules = st.builds(
    AccessRule,
    st.builds(
        ResourcePattern,
        st.just(ResourceType.TOPIC),
        st.sampled_from(NAMES),
        st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    ),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from((Permission.ALLOW, Permission.DENY)),
)
changes = st.lists(st.lists(st.tuples(st.integers(0, 9), st.none() | rules), max_size=4), max_size=12)


def is_about(rule: AccessRule, name: str) -> bool:
    if rule.resource.pattern_type == PatternType.PREFIXED:
        return name.startswith(rule.resource.name)
    return rule.resource.name in (name, "*")


def expected(
    left: Iterable[AccessRule], who: Principal, host: str, operation: Operation, name: str, allows: bool
) -> bool:
    about = [rule for rule in left if is_about(rule, name)]
    mine = [rule for rule in about if rule.principal in (str(who), "User:*") and rule.host in (host, "*")]
    implied = {operation, ALL_OPERATIONS}
    if any(rule.permission == Permission.DENY and rule.operation in implied for rule in mine):
        return False
    if operation is Operation.DESCRIBE:
        implied |= {Operation.READ, Operation.WRITE}
    if any(rule.permission == Permission.ALLOW and rule.operation in implied for rule in mine):
        return True
    return not about and allows


@given(changes, st.booleans())
def test_rules_that_come_and_go_leave_nothing_behind(
    batches: list[list[tuple[int, AccessRule | None]]], allows: bool
) -> None:
    authorizer = StandardAuthorizer(allows_without_rules=allows)
    left: dict[int, AccessRule] = {}
    for batch in batches:
        version = authorizer.version
        authorizer.change(batch)
        assert authorizer.version != version, "what was remembered does not hold any more"
        for number, rule in batch:
            left.pop(number, None)
            if rule is not None:
                left[number] = rule
        for who in (Principal("User", "alice"), Principal("Group", "bob")):
            for operation in (Operation.READ, Operation.DESCRIBE):
                for name in ("a", "abcd", "c"):
                    decided = authorizer.allows(who, "10.0.0.1", on_topic(operation), name)
                    assert decided == expected(left.values(), who, "10.0.0.1", operation, name, allows)
