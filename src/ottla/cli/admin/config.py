"""`ottla config`: configs of topics, brokers, groups and client metrics, while the cluster runs."""

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.naming import did_you_mean
from ottla.cli.output import json_option, say, show_done, show_rows
from ottla.cli.profiles import cluster_options, parse_assignments
from ottla.cli.quantities import config_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.admin import Admin

KINDS: Final = ("topic", "broker", "group", "client-metrics", "broker-logger")
EVERY_BROKER: Final = "all"
_DIGITS: Final = 10
"""Ids of brokers have fewer: they are 32 bits."""


@click.group()
def config() -> None:
    """Show and change configs of a topic, a group or a broker (its id, or `all` for the default of all)."""


@config.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.argument("keys", nargs=-1)
@cluster_options
@json_option
@click.option("--set-only", is_flag=True, help="Show only configs that differ from their default.")
def get(
    properties: dict[str, str], as_json: bool, kind: str, name: str, keys: tuple[str, ...], set_only: bool
) -> None:
    """Show the configs of NAME: all of them, or only KEYS."""

    async def work(admin: "Admin") -> Any:
        return await admin.configs.describe(_kind(kind), _name(kind, name), keys=keys or None)

    found = with_admin(properties, work)
    rows = [
        {
            "config": item.name,
            "value": None if item.is_sensitive else item.value,
            "from": item.source.name.lower(),
            "read_only": item.is_read_only,
        }
        for item in sorted(found.values(), key=lambda item: item.name)
        if not (set_only and item.is_default)
    ]
    _refuse_unknown(keys, set(found), kind)
    show_rows(rows, as_json, f"nothing is set for {kind} {name}")


def _refuse_unknown(keys: tuple[str, ...], found: set[str], kind: str) -> None:
    """Refuse keys that the cluster does not know, with those that may have been meant."""
    from difflib import get_close_matches

    from ottla.metadata.configs.node import NodeConfig
    from ottla.metadata.configs.topic import TopicConfig

    known = {*found, *(NodeConfig.keys if kind == "broker" else TopicConfig.keys if kind == "topic" else ())}
    for key in keys:
        if key not in found and (key not in known or kind == "topic"):
            near = get_close_matches(key, known, 1)
            raise Failure(
                f"there is no config {key} of a {kind}"
                + (f"; did you mean {near[0]}?" if near else f"; `ottla config get {kind} NAME` lists all")
            )


@config.command("set")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.argument("assignments", metavar="[KEY=VALUE]...", nargs=-1)
@cluster_options
@json_option
@click.option(
    "--unset", metavar="KEY", multiple=True, help="Remove the value, so that the default applies again."
)
@click.option("--append", metavar="KEY=VALUE", multiple=True, help="Add an entry to a list.")
@click.option("--subtract", metavar="KEY=VALUE", multiple=True, help="Remove an entry from a list.")
@click.option("--dry-run", is_flag=True, help="Only check whether the change is valid.")
def set_configs(
    properties: dict[str, str],
    as_json: bool,
    kind: str,
    name: str,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Change some configs of NAME. The others stay as they are."""
    values: dict[str, str | None] = {
        **config_values(parse_assignments(assignments, "KEY=VALUE")),
        **dict.fromkeys(unset),
    }
    added, removed = parse_assignments(append, "--append"), parse_assignments(subtract, "--subtract")
    if not values and not added and not removed:
        raise click.UsageError("nothing to change: give KEY=VALUE, --unset, --append or --subtract")

    async def work(admin: "Admin") -> None:
        await admin.configs.alter(
            _kind(kind), _name(kind, name), values, append=added, subtract=removed, validate_only=dry_run
        )

    with_admin(properties, work)
    changed = sorted({*values, *added, *removed})
    _doubt_broker_configs(kind, [key for key in changed if key not in unset])
    done = "could change" if dry_run else "changed"
    show_done(f"{done} {', '.join(changed)} of {kind} {name}", as_json, changed=changed, dry_run=dry_run)


def _doubt_broker_configs(kind: str, keys: "Sequence[str]") -> None:
    """Say which configs are most likely misspelt: a broker takes any name, as it may be of a plugin."""
    if kind != "broker":
        return
    from ottla.metadata.configs.node import NodeConfig

    for key in keys:
        meant = "" if key in NodeConfig.keys else did_you_mean(key, NodeConfig.keys)
        if meant:
            say(f"note: {key} is no config of a broker, and may have no effect{meant}", err=True)


def _kind(kind: str) -> Any:
    from ottla.wire.config_kinds import ResourceType

    return ResourceType[kind.upper().replace("-", "_")]


def _name(kind: str, name: str) -> str:
    """Return the resource's name: the default of all brokers has an empty one."""
    if kind == "broker" and name == EVERY_BROKER:
        return ""
    if kind.startswith("broker") and not (name.isascii() and name.isdecimal() and len(name) < _DIGITS):
        of_all = f", or {EVERY_BROKER!r} for the default of all brokers" if kind == "broker" else ""
        raise click.BadParameter(
            f"{name!r} is not the id of a broker: give a number{of_all}", param_hint="NAME"
        )
    return name
