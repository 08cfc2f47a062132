"""Access rules (ACLs): who may, or may not, do what to which resources."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.client.admin.routes import Routes
from ottla.client.errors import raise_for
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest

ANY: Final = 1


class Resource(IntEnum):
    """The types of resources, by Kafka's codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Pattern(IntEnum):
    """Whether a rule is about one name, or about all that begin with it."""

    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What may be done, by Kafka's codes."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """What a rule says."""

    DENY = 2
    ALLOW = 3


class Rule(NamedTuple):
    """One access rule. The name `*` stands for every resource of its type, the host `*` for every host."""

    principal: str
    operation: int
    resource: int
    name: str
    pattern: int = Pattern.LITERAL
    permission: int = Permission.ALLOW
    host: str = "*"


class AccessRules:
    """The access rules of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(
        self, *, principal: str | None = None, resource: Resource | None = None, name: str | None = None
    ) -> list[Rule]:
        """Return the rules, or those of one principal or about one resource."""
        request = DescribeAclsRequest(
            resource_type_filter=ANY if resource is None else resource,
            resource_name_filter=name,
            pattern_type_filter=ANY,
            principal_filter=principal,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        answer = await self._routes.ask_any(request)
        raise_for(answer.error_code, "cannot list the access rules", answer.error_message)
        return [
            Rule(
                rule.principal,
                rule.operation,
                found.resource_type,
                found.resource_name,
                found.pattern_type,
                rule.permission_type,
                rule.host,
            )
            for found in answer.resources
            for rule in found.acls
        ]

    async def create(self, rules: Iterable[Rule]) -> None:
        """Add rules. One that is there already stays."""
        request = CreateAclsRequest(
            creations=tuple(
                AclCreation(
                    resource_type=rule.resource,
                    resource_name=rule.name,
                    resource_pattern_type=rule.pattern,
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission,
                )
                for rule in rules
            )
        )
        answer = await self._routes.ask_controller(
            request, lambda found: (result.error_code for result in found.results), repeatable=True
        )
        for result in answer.results:
            raise_for(result.error_code, "cannot add an access rule", result.error_message)

    async def delete(self, rules: Iterable[Rule]) -> int:
        """Remove exactly these rules. Returns how many of them there were."""
        request = DeleteAclsRequest(
            filters=tuple(
                DeleteAclsFilter(
                    resource_type_filter=rule.resource,
                    resource_name_filter=rule.name,
                    pattern_type_filter=rule.pattern,
                    principal_filter=rule.principal,
                    host_filter=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission,
                )
                for rule in rules
            )
        )
        answer = await self._routes.ask_controller(
            request, lambda found: (result.error_code for result in found.filter_results), repeatable=True
        )
        for result in answer.filter_results:
            raise_for(result.error_code, "cannot remove an access rule", result.error_message)
        return sum(len(result.matching_acls) for result in answer.filter_results)
