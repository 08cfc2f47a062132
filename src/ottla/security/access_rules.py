"""Access rules (ACLs): what they say, which resources they are about, and which a filter selects.

A rule is the metadata record of it without its id. All comparisons are of exact texts, as in Kafka: a host is
`*` or one address, a principal is `*` of its type or one name.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from ottla.security.rights import CLUSTER, Operation, ResourceType
from ottla.wire.metadata_records.access_control import AccessControlEntryRecord

ANY: Final = 1
"""What a filter says that selects every type, operation or permission."""
ALL_OPERATIONS: Final = 2
WILDCARD: Final = "*"
EVERYBODY: Final = "User:*"
"""As in Kafka it stands for principals of every type."""


class PatternType(IntEnum):
    """How the name of a resource in a rule or a filter is meant."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """What a rule says."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    """Which resources a rule is about."""

    resource_type: int
    name: str
    pattern_type: int

    def __str__(self) -> str:
        return f"{ResourceType(self.resource_type).name}:{PatternType(self.pattern_type).name}:{self.name}"


class AccessRule(NamedTuple):
    """Who may, or may not, do what to which resources, and from where."""

    resource: ResourcePattern
    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        operation = "ALL" if self.operation == ALL_OPERATIONS else Operation(self.operation).name
        return (
            f"{Permission(self.permission).name} {self.principal} from {self.host} to {operation} "
            f"{self.resource}"
        )


class RuleFilter(NamedTuple):
    """Which rules are meant. None stands for any name, principal or host."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def selects(self, rule: AccessRule) -> bool:
        """Say whether a rule is meant."""
        return (
            self.resource_type in (ANY, rule.resource.resource_type)
            and self._selects_name(rule.resource)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (ANY, rule.operation)
            and self.permission in (ANY, rule.permission)
        )

    def _selects_name(self, resource: ResourcePattern) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, resource.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return self.name == resource.name
        if resource.pattern_type == PatternType.LITERAL:
            return resource.name in (self.name, WILDCARD)
        return self.name.startswith(resource.name)

    def find_fault(self) -> str | None:
        """Return what is wrong with the filter; None if nothing is."""
        return _find_unknown(
            self.resource_type, self.pattern_type, self.operation, self.permission, lowest=ANY
        )


def rule_of(record: AccessControlEntryRecord) -> AccessRule:
    """Return the rule of a metadata record."""
    return AccessRule(
        ResourcePattern(record.resource_type, record.resource_name, record.pattern_type),
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def find_fault(rule: AccessRule) -> str | None:
    """Return why a rule cannot be made; None if it can."""
    resource = rule.resource
    unknown = _find_unknown(
        resource.resource_type, resource.pattern_type, rule.operation, rule.permission, lowest=ANY + 1
    )
    if unknown is not None:
        return unknown
    if resource.pattern_type == PatternType.MATCH:
        return "Invalid patternType MATCH"
    if not resource.name:
        return "Resource name should not be empty"
    if resource.resource_type == ResourceType.CLUSTER and resource.name != CLUSTER:
        return f"The only valid name for the CLUSTER resource is {CLUSTER}"
    kind, colon, name = rule.principal.partition(":")
    if not (kind and colon and name):
        return f"Could not parse principal from `{rule.principal}` (no colon is present separating the type"
    return None


def _find_unknown(
    resource_type: int, pattern_type: int, operation: int, permission: int, *, lowest: int
) -> str | None:
    for what, value, highest in (
        ("patternType", pattern_type, PatternType.PREFIXED),
        ("resourceType", resource_type, ResourceType.USER),
        ("operation", operation, Operation.TWO_PHASE_COMMIT),
        ("permissionType", permission, Permission.ALLOW),
    ):
        if not lowest <= value <= highest:
            return f"Invalid {what} {'ANY' if value == ANY else 'UNKNOWN'}"
    return None
