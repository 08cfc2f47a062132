"""`ottla export`, `ottla plan`, `ottla apply`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, say
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.cli.desired.planning import Change
    from ottla.client.admin import Admin

_file = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_prune = click.option(
    "--prune",
    is_flag=True,
    help="Also remove what the file does not name, of the sections that it has: topics with all their "
    "records, configs, rules, quotas, users.",
)


@click.command()
@cluster_options
def export(properties: dict[str, str]) -> None:
    """Print what the cluster is: topics, configs, access rules, quotas and users, as `ottla apply` takes it.

    Passwords and records are not in it.
    """
    from ottla.cli.desired.observing import observe
    from ottla.cli.desired.state import render_state

    say(render_state(with_admin(properties, observe)), nl=False)


@click.command()
@_file
@cluster_options
@json_option
@_prune
def plan(file: Path, properties: dict[str, str], as_json: bool, prune: bool) -> None:
    """Show what `ottla apply FILE` would do. Exit code 0 if nothing, 10 if something."""
    from ottla.cli.explain.running import FOUND

    changes = with_admin(properties, lambda admin: _changes(admin, file, prune))
    _show(changes, as_json)
    if changes:
        raise click.exceptions.Exit(FOUND)


@click.command()
@_file
@cluster_options
@json_option
@_prune
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def apply(file: Path, properties: dict[str, str], as_json: bool, prune: bool, yes: bool) -> None:
    """Make the cluster what FILE says. What it does not name stays as it is, unless --prune is given.

    Applied again, it changes nothing.
    """
    changes = with_admin(properties, lambda admin: _changes(admin, file, prune))
    if not changes or not as_json:
        _show(changes, as_json)
    if not changes:
        return
    confirm("do this?", yes)

    async def work(admin: "Admin") -> None:
        from ottla.cli.desired.carrying_out import carry_out

        for change in changes:
            await carry_out(admin, change)

    with_admin(properties, work)
    if as_json:
        _show(changes, as_json)
    else:
        say(f"done: {len(changes)} change" + "s" * (len(changes) != 1))


async def _changes(admin: "Admin", file: Path, prune: bool) -> "list[Change]":
    from ottla.cli.desired.carrying_out import carry_out
    from ottla.cli.desired.observing import observe
    from ottla.cli.desired.planning import Impossible
    from ottla.cli.desired.planning import plan as make_plan
    from ottla.cli.desired.state import read_state

    wanted = read_state(file)
    try:
        changes = make_plan(wanted, await observe(admin), prune=prune)
    except Impossible as error:
        raise Failure(f"{error}; nothing was done") from error
    for change in changes:
        # What a broker would refuse half-way is said before anything is done.
        await carry_out(admin, change, rehearse=True)
    return changes


def _show(changes: "list[Change]", as_json: bool) -> None:
    if as_json:
        say(json.dumps([_as_json(change) for change in changes], indent=2))
    elif not changes:
        say("the cluster is what the file says")
    for change in () if as_json else changes:
        say(change.text)


def _as_json(change: "Change") -> dict[str, Any]:
    name: Any = change.name
    if isinstance(name, tuple) and hasattr(name, "_asdict"):
        name = name._asdict()
    return {
        "action": change.action.value,
        "kind": change.kind,
        "name": list(name) if isinstance(name, tuple) else name,
        "values": dict(change.values),
    }
