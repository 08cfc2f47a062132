"""`ottla doctor`: one page, green or what to do."""

import time
from typing import TYPE_CHECKING

import click

from ottla.cli.explain.running import FOUND, with_access
from ottla.cli.output import json_option, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.doctor import Check


@click.command()
@cluster_options
@json_option
def doctor(properties: dict[str, str], as_json: bool) -> None:
    """Check a cluster in the order that operators follow: lag, members, brokers, producers, network.

    Exit code 0 if everything is fine, 10 if something is not.
    """

    async def work(access: "Access") -> "list[Check]":
        from ottla.explain.doctor import examine

        return await examine(access, int(time.time() * 1000))

    checks = with_access(properties, work)
    rows = [
        {"area": item.area, "fine": item.is_fine, "finding": item.text, "next": item.next_step}
        for item in checks
    ]
    show_rows(rows, as_json, "")
    if not all(item.is_fine for item in checks):
        raise click.exceptions.Exit(FOUND)
