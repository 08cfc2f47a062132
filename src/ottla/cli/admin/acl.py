"""`ottla acl`: access rules, and which of them decides.

A resource is written `topic:payments`, `topic:pay*` for all names that begin with `pay`, or `topic:*` for
every topic. There are also `group`, `transactional-id`, `token` and `user`, and `cluster` without a name.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import json_option, show_done, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.access_rules import Rule

KINDS: Final = {
    "topic": "TOPIC",
    "group": "GROUP",
    "cluster": "CLUSTER",
    "transactional-id": "TRANSACTIONAL_ID",
    "token": "DELEGATION_TOKEN",
    "user": "USER",
}
OPERATIONS: Final = (
    "all",
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "cluster-action",
    "describe-configs",
    "alter-configs",
    "idempotent-write",
    "create-tokens",
    "describe-tokens",
    "two-phase-commit",
)
_CLUSTER: Final = "kafka-cluster"
_operation = click.Choice(OPERATIONS, case_sensitive=False)
F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def acl() -> None:
    """Access rules: list them, add and remove them, and see which one decides.

    PRINCIPAL is a user such as `User:alice` or `alice`, or `User:*` for everybody. RESOURCE is
    `topic:NAME`, `group:NAME`, `transactional-id:NAME`, `token:ID`, `user:PRINCIPAL` or `cluster`. A NAME
    that ends with `*` stands for all names that begin so.
    """


@acl.command("list")
@click.option("--principal", help="Only the rules of this principal.")
@cluster_options
@json_option
def list_rules(properties: dict[str, str], as_json: bool, principal: str | None) -> None:
    """List the access rules."""

    async def work(admin: "Admin") -> Any:
        return await admin.access_rules.list(principal=None if principal is None else _principal(principal))

    rows = [rule_row(rule) for rule in sorted(with_admin(properties, work))]
    show_rows(rows, as_json, "there are no access rules")


def _rule_options(command: F) -> F:
    """Add the arguments and options that name one rule. The command gets it as `rule`."""

    @wraps(command)
    def with_rule(
        *, principal: str, operation: str, resource: str, host: str, deny: bool, **others: Any
    ) -> None:
        command(rule=make_rule(principal, operation, resource, host, deny), **others)

    for option in (
        click.option("--host", default="*", show_default=True, help="The IP address in the rule."),
        click.option("--deny", is_flag=True, help="The rule forbids instead of allowing."),
        click.argument("resource"),
        click.argument("operation", type=_operation),
        click.argument("principal"),
    ):
        option(with_rule)
    return cast("F", with_rule)


@acl.command()
@_rule_options
@cluster_options
@json_option
def add(properties: dict[str, str], as_json: bool, rule: "Rule") -> None:
    """Allow PRINCIPAL the OPERATION on RESOURCE, or forbid it with --deny."""

    async def work(admin: "Admin") -> None:
        await admin.access_rules.create([rule])

    with_admin(properties, work)
    show_done(f"added: {_words(rule)}", as_json, **rule_row(rule))


@acl.command()
@_rule_options
@cluster_options
@json_option
def remove(properties: dict[str, str], as_json: bool, rule: "Rule") -> None:
    """Remove exactly this rule."""

    async def work(admin: "Admin") -> Any:
        return await admin.access_rules.delete([rule])

    if not with_admin(properties, work):
        raise Failure(f"there is no such rule: {_words(rule)}; see `ottla acl list`")
    show_done(f"removed: {_words(rule)}", as_json, **rule_row(rule))


@acl.command()
@click.argument("principal")
@click.argument("operation", type=_operation)
@click.argument("resource")
@click.option("--host", default="127.0.0.1", show_default=True, help="The IP address of the client.")
@cluster_options
@json_option
def why(
    properties: dict[str, str], as_json: bool, principal: str, operation: str, resource: str, host: str
) -> None:
    """Say whether PRINCIPAL may use OPERATION on RESOURCE, and which rule decides.

    The rules and super users come from the cluster, and are applied as Kafka applies them.
    """
    from ottla.security.access_rules import AccessRule, ResourcePattern
    from ottla.security.hosts import java_address
    from ottla.security.principal import parse_principal
    from ottla.security.rights import Operation, ResourceType, Right
    from ottla.security.standard_authorizer import StandardAuthorizer

    if operation == "all":
        raise Failure("`all` is not one operation: ask about a single one, such as read")
    asked = make_rule(principal, operation, resource, host, False)

    async def work(admin: "Admin") -> Any:
        settings = await _authorizer_settings(admin)
        return settings, await admin.access_rules.list()

    (super_users, allows), rules = with_admin(properties, work)
    authorizer = StandardAuthorizer(super_users or "", allows_without_rules=allows)
    authorizer.change(
        enumerate(
            AccessRule(
                ResourcePattern(rule.resource, rule.name, rule.pattern),
                rule.principal,
                rule.host,
                rule.operation,
                rule.permission,
            )
            for rule in rules
        )
    )
    right = Right(Operation(asked.operation), ResourceType(asked.resource))
    decision = authorizer.decide(parse_principal(asked.principal), java_address(host), right, asked.name)
    verdict = "allowed" if decision.is_allowed else "denied"
    if decision.rule is not None:
        verdict += f" by the rule: {decision.rule}"
    else:
        verdict += f": {decision.reason.value}"
    if super_users is None:
        verdict += ". The brokers do not show super.users: a principal that they name may do everything"
    show_done(
        verdict,
        as_json,
        allowed=decision.is_allowed,
        reason=decision.reason.name.lower(),
        rule=None if decision.rule is None else str(decision.rule),
    )


async def _authorizer_settings(admin: "Admin") -> tuple[str | None, bool]:
    """Return the super users, if brokers show them, and whether no rule means that all are allowed."""
    from ottla.wire.config_kinds import ResourceType

    keys = ("super.users", "allow.everyone.if.no.acl.found")
    info = await admin.cluster.describe()
    broker = str(info.brokers[0].node_id)
    found = await admin.configs.describe(ResourceType.BROKER, broker, keys=keys)
    values = {name: item.value for name, item in found.items()}
    return values.get(keys[0]), (values.get(keys[1]) or "").lower() == "true"


def make_rule(principal: str, operation: str, resource: str, host: str, deny: bool) -> "Rule":
    from ottla.client.admin.access_rules import Operation, Pattern, Permission, Resource, Rule

    try:
        kind, name = check_resource(resource)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="RESOURCE") from error
    pattern = Pattern.LITERAL
    if kind == "cluster":
        name = _CLUSTER
    elif name.endswith("*") and name != "*":
        name, pattern = name[:-1], Pattern.PREFIXED
    return Rule(
        _principal(principal),
        Operation[operation.upper().replace("-", "_")],
        Resource[KINDS[kind]],
        name,
        pattern,
        Permission.DENY if deny else Permission.ALLOW,
        host,
    )


def check_resource(resource: str) -> tuple[str, str]:
    """Return the kind and the name of a resource. Raises ValueError."""
    kind, colon, name = resource.partition(":")
    if kind not in KINDS or (not colon and kind != "cluster") or (colon and not name):
        kinds = ", ".join(f"{one}:NAME" for one in KINDS if one != "cluster")
        raise ValueError(f"{resource!r} is not one of {kinds}, cluster")
    return kind, name


def _principal(text: str) -> str:
    return text if ":" in text else f"User:{text}"


def rule_row(rule: "Rule") -> dict[str, Any]:
    from ottla.client.admin.access_rules import Operation, Pattern, Permission, Resource

    kinds = {name: kind for kind, name in KINDS.items()}
    kind = kinds[Resource(rule.resource).name]
    star = "*" if rule.pattern == Pattern.PREFIXED else ""
    return {
        "permission": Permission(rule.permission).name.lower(),
        "principal": rule.principal,
        "operation": Operation(rule.operation).name.lower().replace("_", "-"),
        "resource": "cluster" if kind == "cluster" else f"{kind}:{rule.name}{star}",
        "host": rule.host,
    }


def _words(rule: "Rule") -> str:
    row = rule_row(rule)
    where = "" if rule.host == "*" else f" from {rule.host}"
    return f"{row['permission']} {row['principal']} to {row['operation']} {row['resource']}{where}"
