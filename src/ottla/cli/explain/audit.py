"""`ottla audit`: which delivery guarantee holds, hop by hop."""

from typing import TYPE_CHECKING

import click

from ottla.cli.explain.running import with_access
from ottla.cli.output import json_option, say, show_one, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.audit import Hop


@click.command()
@click.argument("group")
@cluster_options
@json_option
def audit(group: str, properties: dict[str, str], as_json: bool) -> None:
    """Show which delivery guarantee holds for what GROUP reads, hop by hop.

    GROUP is a consumer group, or a pipeline. Each hop is judged by what can be seen: producer ids and
    transactions in the log, replicas, commits, the ledger of a pipeline.
    """

    async def work(access: "Access") -> "list[Hop]":
        from ottla.explain.audit import audit as look

        await access.admin.groups.describe(group)
        return await look(access, group)

    from ottla.explain.audit import weakest

    hops = with_access(properties, work)
    rows = [
        {"hop": item.hop, "guarantee": item.guarantee, "why": item.why, "to_improve": item.to_improve}
        for item in hops
    ]
    if as_json:
        show_one({"group": group, "end_to_end": weakest(hops), "hops": rows}, as_json)
        return
    show_rows(rows, as_json, f"group {group} has read nothing yet")
    say(f"\nend to end: {weakest(hops)}")
