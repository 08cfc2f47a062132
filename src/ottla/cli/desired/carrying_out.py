"""Doing what a plan says, one change after the other: what was done before a failure is done.

So everything is rehearsed before anything is done: brokers say what they would refuse.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.cli.admin.acl import make_rule
from ottla.cli.admin.config import EVERY_BROKER
from ottla.cli.admin.quota import quota_entity
from ottla.cli.admin.settling import until_gone, until_served
from ottla.cli.desired.observing import KIND_NAMES
from ottla.cli.desired.planning import Action, Change
from ottla.cli.failure import Failure
from ottla.client.admin.credentials import ScramMechanism
from ottla.wire.config_kinds import ResourceType

if TYPE_CHECKING:
    from ottla.client.admin import Admin


async def carry_out(admin: "Admin", change: Change, *, rehearse: bool = False) -> None:
    """Do one change, or only find out whether it would be refused."""
    match change.kind:
        case "topic":
            await _topic(admin, change, rehearse)
        case "configs":
            kind, name = change.name
            place = next(one for one, word in KIND_NAMES.items() if word == kind)
            name = "" if kind == "broker" and name == EVERY_BROKER else name
            await admin.configs.alter(place, name, change.values, validate_only=rehearse)
        case "user":
            await _user(admin, change, rehearse)
        case "rule":
            rule = change.name
            made = make_rule(
                rule.principal, rule.operation, rule.resource, rule.host, rule.permission == "deny"
            )
            if rehearse:
                # Fails if there is no authorizer. There is no way to ask for more.
                await admin.access_rules.list(principal=rule.principal)
                return
            if change.action is Action.DELETE:
                await admin.access_rules.delete([made])
            else:
                await admin.access_rules.create([made])
        case _:
            await admin.quotas.alter(quota_entity(*change.name), change.values, validate_only=rehearse)


async def _topic(admin: "Admin", change: Change, rehearse: bool) -> None:
    values: dict[str, Any] = dict(change.values)
    partitions = values.pop("partitions", None)
    match change.action:
        case Action.CREATE:
            replicas = values.pop("replication_factor", None)
            created = await admin.topics.create(
                change.name,
                partitions=partitions,
                replication_factor=replicas,
                configs=values,
                validate_only=rehearse,
            )
            if not rehearse:
                await until_served(admin, change.name, created.partitions)
        case Action.CHANGE:
            if partitions is not None:
                await admin.topics.add_partitions(change.name, partitions, validate_only=rehearse)
                if not rehearse:
                    await until_served(admin, change.name, partitions)
            if values:
                await admin.configs.alter(ResourceType.TOPIC, change.name, values, validate_only=rehearse)
        case Action.DELETE if not rehearse:
            (await admin.topics.delete_many([change.name])).check()
            await until_gone(admin, [change.name])


async def _user(admin: "Admin", change: Change, rehearse: bool) -> None:
    mechanism = ScramMechanism[change.values["mechanism"].replace("-", "_")]
    if change.action is Action.DELETE:
        if not rehearse:
            await admin.credentials.delete(change.name, mechanism)
        return
    path = Path(change.values["password_file"])
    try:
        password = path.read_text(encoding="utf-8").splitlines()[0]
    except (OSError, ValueError, IndexError) as error:
        raise Failure(f"cannot read the password of {change.name} from {path}: {error}") from error
    if not rehearse:
        await admin.credentials.set_password(change.name, password, mechanism)
