"""The rules of Kafka's StandardAuthorizer, over the access rules of the metadata.

    1. A super user is allowed everything, whatever the rules say.
    2. A rule that denies the operation to the client decides.
    3. Otherwise a rule that allows it decides. READ, WRITE, DELETE and ALTER also allow DESCRIBE, and
       ALTER_CONFIGS allows DESCRIBE_CONFIGS.
    4. If no rule at all is about the resource, `allow.everyone.if.no.acl.found` decides.
    5. Otherwise the client is denied.

Deviation: a rule that allows counts for the journal of the nodes only if it names the journal, as a name or
as a prefix that begins like it. The journal tells who does what with all topics, and it is the evidence if
something went wrong. So who may read, or delete, all topics may not read or delete that.

Decisions are remembered until a rule changes, so that a check costs a look-up however many rules there are.
A change costs as much as the rules that it changes, and a decision as much as the rules about both the
resource and the client.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ottla.security.access_rules import (
    ALL_OPERATIONS,
    EVERYBODY,
    WILDCARD,
    AccessRule,
    PatternType,
    Permission,
)
from ottla.security.principal import Principal
from ottla.security.rights import OPERATIONS_ON, Operation, ResourceType, Right, bits_of

CLASS_NAME: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
JOURNAL: Final = "__ottla_journal"
"""The topic of the journal."""
_OWN_PREFIX: Final = "__ottla"
REMEMBERED_MAX: Final = 100_000
"""How many decisions are remembered. Peers choose names, so there has to be a bound."""
REMEMBERED_NAME_MAX: Final = 249
"""How long a name may be whose decision is remembered: no topic has a longer one, and a request may have
megabytes."""

_ANY_NAME: Final = "hardcode"
"""The name that Kafka tries first when any resource of a type will do."""

_IMPLIED_BY: Final[Mapping[Operation, frozenset[int]]] = {
    operation: frozenset((operation, ALL_OPERATIONS)) for operation in Operation
} | {
    Operation.DESCRIBE: frozenset(
        (
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
            ALL_OPERATIONS,
        )
    ),
    Operation.DESCRIBE_CONFIGS: frozenset(
        (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, ALL_OPERATIONS)
    ),
}
"""Which operations of a rule that allows cover an operation."""


class Reason(Enum):
    """What decided."""

    SUPER_USER = "super.users names the principal"
    RULE = "a rule says so"
    NO_RULE = "no rule is about the resource"
    NO_RULE_FOR_CLIENT = "no rule allows it"


class Decision(NamedTuple):
    """Whether something is allowed, and what decided that."""

    is_allowed: bool
    reason: Reason
    rule: AccessRule | None = None

    def __str__(self) -> str:
        if self.rule is not None:
            return f"MatchingAcl(acl={self.rule})"
        if self.reason is Reason.SUPER_USER:
            return "SuperUser"
        return "DefaultAllow" if self.is_allowed else "DefaultDeny"


RulesById = dict[Hashable, AccessRule]
RulesByPrincipal = dict[str, RulesById]


class _RulesOfType:
    """The rules about one type of resource, by the name in their pattern and by principal."""

    def __init__(self) -> None:
        self.literal: dict[str, RulesByPrincipal] = {}
        self.prefixed: dict[str, RulesByPrincipal] = {}
        self.by_principal: RulesByPrincipal = {}
        # How many prefixes there are of each length.
        self._lengths: Counter[int] = Counter()

    def add(self, rule_id: Hashable, rule: AccessRule) -> None:
        name = rule.resource.name
        patterns = self._patterns(rule)
        if name not in patterns:
            patterns[name] = {}
            if patterns is self.prefixed:
                self._lengths[len(name)] += 1
        patterns[name].setdefault(rule.principal, {})[rule_id] = rule
        self.by_principal.setdefault(rule.principal, {})[rule_id] = rule

    def remove(self, rule_id: Hashable, rule: AccessRule) -> None:
        name = rule.resource.name
        patterns = self._patterns(rule)
        for by_principal in (patterns[name], self.by_principal):
            del by_principal[rule.principal][rule_id]
            if not by_principal[rule.principal]:
                del by_principal[rule.principal]
        if not patterns[name]:
            del patterns[name]
            if patterns is self.prefixed:
                self._lengths[len(name)] -= 1
                self._lengths += Counter()

    def about(self, name: str) -> Iterator[RulesByPrincipal]:
        """Give the rules about one resource."""
        if name in self.literal:
            yield self.literal[name]
        if name != WILDCARD and WILDCARD in self.literal:
            yield self.literal[WILDCARD]
        for length in self._lengths:
            if length <= len(name) and name[:length] in self.prefixed:
                yield self.prefixed[name[:length]]

    def _patterns(self, rule: AccessRule) -> dict[str, RulesByPrincipal]:
        is_prefix = rule.resource.pattern_type == PatternType.PREFIXED
        return self.prefixed if is_prefix else self.literal


_NO_RULES: Final = _RulesOfType()


class StandardAuthorizer:
    """Kafka's rules. Implements `Authorizer`."""

    is_active = True

    def __init__(self, super_users: str = "", *, allows_without_rules: bool = False) -> None:
        """`super_users` are principals with semicolons between them."""
        self.version = 0
        self._super_users = frozenset(filter(None, (one.strip() for one in super_users.split(";"))))
        self._allows_without_rules = allows_without_rules
        self._rules: dict[Hashable, AccessRule] = {}
        self._by_type: dict[int, _RulesOfType] = {}
        self._with_host = 0
        self._remembered: dict[tuple[Principal, str, Right, str], bool] = {}

    def change(self, changes: Iterable[tuple[Hashable, AccessRule | None]]) -> None:
        """Let rules hold from now on, each under an id. None in the place of a rule removes it.

        The others are not looked at: a change costs the same however many there are.
        """
        for rule_id, rule in changes:
            self._remove(rule_id)
            if rule is not None:
                self._add(rule_id, rule)
        self._remembered.clear()
        self.version += 1

    def _add(self, rule_id: Hashable, rule: AccessRule) -> None:
        self._rules[rule_id] = rule
        self._by_type.setdefault(rule.resource.resource_type, _RulesOfType()).add(rule_id, rule)
        self._with_host += rule.host != WILDCARD

    def _remove(self, rule_id: Hashable) -> None:
        rule = self._rules.pop(rule_id, None)
        if rule is not None:
            self._by_type[rule.resource.resource_type].remove(rule_id, rule)
            self._with_host -= rule.host != WILDCARD

    def allows(self, principal: Principal, host: str, right: Right, name: str) -> bool:
        """Say whether a client on `host` may use a right on the resource of this name."""
        key = (principal, host, right, name)
        known = self._remembered.get(key)
        if known is None:
            known = self.decide(principal, host, right, name).is_allowed
            if len(name) <= REMEMBERED_NAME_MAX:
                if len(self._remembered) >= REMEMBERED_MAX:
                    self._remembered.clear()
                self._remembered[key] = known
        return known

    def decide(self, principal: Principal, host: str, right: Right, name: str) -> Decision:
        """Decide, and say what decided."""
        who = str(principal)
        if who in self._super_users:
            return Decision(True, Reason.SUPER_USER)
        operation, resource_type = right
        allowing: AccessRule | None = None
        is_about_resource = False
        for by_principal in self._by_type.get(resource_type, _NO_RULES).about(name):
            is_about_resource = True
            for rule in _rules_for(by_principal, who, host):
                if rule.permission == Permission.DENY:
                    if rule.operation in (operation, ALL_OPERATIONS):
                        return Decision(False, Reason.RULE, rule)
                elif allowing is None and rule.operation in _IMPLIED_BY[operation] and _counts(rule, name):
                    allowing = rule
        if allowing is not None:
            return Decision(True, Reason.RULE, allowing)
        if not is_about_resource:
            return Decision(self._allows_without_rules, Reason.NO_RULE)
        return Decision(False, Reason.NO_RULE_FOR_CLIENT)

    def allows_some(self, principal: Principal, host: str, right: Right) -> bool:
        """Say whether some rule allows the right on resources that no rule denies as a whole."""
        if self.allows(principal, host, right, _ANY_NAME):
            return True
        who = str(principal)
        operation, resource_type = right
        allowing: list[AccessRule] = []
        denied_names: set[str] = set()
        denied_prefixes: set[str] = set()
        for rule in _rules_for(self._by_type.get(resource_type, _NO_RULES).by_principal, who, host):
            if rule.permission == Permission.ALLOW:
                if rule.operation in _IMPLIED_BY[operation]:
                    allowing.append(rule)
            elif rule.operation in (operation, ALL_OPERATIONS):
                if rule.resource.pattern_type == PatternType.PREFIXED:
                    denied_prefixes.add(rule.resource.name)
                elif rule.resource.name == WILDCARD:
                    return False
                else:
                    denied_names.add(rule.resource.name)
        lengths = {len(prefix) for prefix in denied_prefixes}
        return any(not _is_covered(rule, denied_names, denied_prefixes, lengths) for rule in allowing)

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        """Return the bit set of what a client may do to a resource."""
        return bits_of(
            *(
                operation
                for operation in OPERATIONS_ON[resource_type]
                if self.allows(principal, host, Right(operation, resource_type), name)
            )
        )

    def audience(self, principal: Principal, host: str) -> Hashable:
        """Clients of one principal are allowed the same, unless rules tell hosts apart."""
        return (principal, host if self._with_host else "", self.version)


def _counts(rule: AccessRule, name: str) -> bool:
    """Say whether a rule that allows is meant for a resource, and not only by accident."""
    is_journal = name == JOURNAL and rule.resource.resource_type == ResourceType.TOPIC
    return not is_journal or rule.resource.name.startswith(_OWN_PREFIX)


def _rules_for(by_principal: RulesByPrincipal, principal: str, host: str) -> Iterator[AccessRule]:
    """Give the rules that are about a client."""
    for who in (principal, EVERYBODY) if principal != EVERYBODY else (EVERYBODY,):
        for rule in by_principal.get(who, {}).values():
            if rule.host in (host, WILDCARD):
                yield rule


def _is_covered(
    rule: AccessRule, denied_names: set[str], denied_prefixes: set[str], lengths: set[int]
) -> bool:
    """Say whether everything that a rule allows is denied by others. `lengths` are those of the prefixes."""
    resource = rule.resource
    if resource.pattern_type == PatternType.LITERAL:
        if resource.name == WILDCARD:
            return False
        if resource.name in denied_names:
            return True
    return any(resource.name[:length] in denied_prefixes for length in lengths)
