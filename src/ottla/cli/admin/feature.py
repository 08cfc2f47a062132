"""`ottla feature`: which features a cluster uses, and raising them after an upgrade."""

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.numbers import PARTITION
from ottla.cli.output import json_option, say, show_done, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin


@click.group()
def feature() -> None:
    """List the features of a cluster, and set their levels."""


@feature.command("list")
@cluster_options
@json_option
def list_features(properties: dict[str, str], as_json: bool) -> None:
    """List features, the level that is in use, and those that the nodes support."""
    found = with_admin(properties, lambda admin: admin.cluster.features())
    rows = [
        {
            "feature": item.name,
            "level": item.finalized,
            "lowest": item.supported.first,
            "highest": item.supported.last,
        }
        for item in found.values()
    ]
    show_rows(rows, as_json, "the cluster has no features")


@feature.command()
@click.argument("name", required=False)
@cluster_options
@json_option
@click.option("--to", "level", type=PARTITION, help="The level. Default: the highest that is supported.")
@click.option("--downgrade", is_flag=True, help="Allow a lower level than the one in use.")
@click.option("--dry-run", is_flag=True, help="Only check whether the change is possible.")
def upgrade(
    properties: dict[str, str],
    as_json: bool,
    name: str | None,
    level: int | None,
    downgrade: bool,
    dry_run: bool,
) -> None:
    """Set the feature NAME to a level, or all features to the highest that all nodes support.

    Do it when all nodes run the new release, and you do not want to go back.
    """
    if name is None and level is not None:
        raise click.UsageError("--to needs the NAME of a feature")

    async def work(admin: "Admin") -> dict[str, int]:
        found = await admin.cluster.features()
        if name is not None and name not in found:
            raise Failure(f"there is no feature {name}; `ottla feature list` lists them")
        chosen = list(found.values()) if name is None else [found[name]]
        wanted = {
            item.name: item.supported.last if level is None else level
            for item in chosen
            if item.finalized != (item.supported.last if level is None else level)
        }
        # One after the other: a feature may need another one at its new level.
        for one in sorted(wanted, key=lambda found_name: found_name != "metadata.version"):
            await admin.cluster.update_features(
                {one: wanted[one]}, downgrade=downgrade, validate_only=dry_run
            )
            if not as_json and len(wanted) > 1:
                say(f"{one} is {'could be' if dry_run else 'now'} {wanted[one]}", err=True)
        return wanted

    changed = with_admin(properties, work)
    done = "could set" if dry_run else "set"
    sentence = f"{done} " + ", ".join(f"{one} to {to}" for one, to in changed.items())
    facts: dict[str, Any] = {"changed": changed, "dry_run": dry_run}
    show_done(sentence if changed else "all features have that level already", as_json, **facts)
