"""Who may do what: users, access rules, quotas.

What this visitor may not see is said, and spoils no other part.
"""

import asyncio
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.access_rules import Operation, Pattern, Permission, Resource, Rule
from ottla.client.errors import ClientError
from ottla.console.serving.call import Call
from ottla.console.serving.failures import failure_of

_SHOWN_MAX: Final = 1_000


class RuleLine(NamedTuple):
    """An access rule in words."""

    is_allowing: bool
    principal: str
    operation: str
    resource: str
    host: str


async def access(call: Call) -> Response:
    """Show users, rules and quotas."""
    admin = call.visit.access.admin
    users, rules, quotas = await asyncio.gather(
        _or_sentence(call, admin.credentials.describe()),
        _or_sentence(call, admin.access_rules.list()),
        _or_sentence(call, admin.quotas.describe()),
    )
    text = call.text("q").casefold()
    lines = rules if isinstance(rules, str) else [line(rule) for rule in sorted(rules)]
    if not isinstance(lines, str):
        lines = [one for one in lines if text in f"{one.principal} {one.operation} {one.resource}".casefold()]
    return call.page(
        "access.html",
        place="access",
        users=users if isinstance(users, str) else sorted(users.succeeded.items()),
        rules=lines if isinstance(lines, str) else lines[:_SHOWN_MAX],
        found=0 if isinstance(lines, str) else len(lines),
        quotas=quotas if isinstance(quotas, str) else _quota_lines(quotas),
        text=call.text("q"),
    )


async def _or_sentence(call: Call, reading: Any) -> Any:
    try:
        return await reading
    except ClientError as error:
        return failure_of(error, call.visit.user).sentence


def line(rule: Rule) -> RuleLine:
    """Return a rule in words, also one that a newer broker knows and this console does not."""
    kind = _word(Resource, rule.resource)
    pattern = "" if rule.pattern == Pattern.LITERAL else " and all that begin so"
    return RuleLine(
        rule.permission == Permission.ALLOW,
        rule.principal,
        _word(Operation, rule.operation),
        kind if rule.resource == Resource.CLUSTER else f"{kind} {rule.name}{pattern}",
        rule.host,
    )


def _word(kind: Any, number: int) -> str:
    known: dict[int, str] = {int(one): one.name for one in kind}
    return known.get(number, f"code {number}").lower().replace("_", " ")


def _quota_lines(quotas: Any) -> list[tuple[str, str]]:
    found = []
    for entity, values in quotas.items():
        whom = ", ".join(
            f"{kind} {'(default)' if name is None else name}" for kind, name in sorted(entity, key=str)
        )
        found.append((whom, ", ".join(f"{key}={value:g}" for key, value in sorted(values.items()))))
    return sorted(found)
