"""`ottla lag`: how far all groups are behind, how fast they read, and what will come of it."""

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.explain.running import FOUND, with_access
from ottla.cli.numbers import COUNT, PAUSE_S
from ottla.cli.output import json_option, say, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.lag.looking import GroupLook, Looks
    from ottla.explain.lag.outlook import Bounds, PartitionLook

_LEVELS: Final = ("caution", "warning", "critical")
_CLEAR: Final = "\x1b[H\x1b[2J"


@click.command()
@click.argument("groups", metavar="[GROUP]...", nargs=-1)
@cluster_options
@json_option
@click.option(
    "--over",
    "over_s",
    type=PAUSE_S,
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to measure speeds.",
)
@click.option("--once", is_flag=True, help="Look only once, and show no speeds.")
@click.option(
    "--partitions", "by_partition", is_flag=True, help="Show each partition, as for a single GROUP."
)
@click.option("--watch", is_flag=True, help="Show it again and again, until it is stopped.")
@click.option("--caution", type=COUNT, default=100, show_default=True, help="Its label begins here.")
@click.option("--warning", type=COUNT, default=1_000, show_default=True, help="Its label begins here.")
@click.option("--critical", type=COUNT, default=10_000, show_default=True, help="Its label begins here.")
@click.option(
    "--fail-on",
    type=click.Choice(_LEVELS),
    help=f"Exit with code {FOUND} if a group has this label or a worse one, or loses records to retention.",
)
@click.option(
    "--metrics",
    "metrics_port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="With --watch: also serve the figures to Prometheus, on this port of 127.0.0.1.",
)
def lag(
    groups: tuple[str, ...],
    properties: dict[str, str],
    as_json: bool,
    over_s: float,
    once: bool,
    by_partition: bool,
    watch: bool,
    caution: int,
    warning: int,
    critical: int,
    fail_on: str | None,
    metrics_port: int | None,
) -> None:
    """Show how far groups are behind: all of them, or each GROUP.

    Pipelines and share groups are shown too. Lag is counted in records and in seconds, the age of the oldest
    unread record. A lag has a label: normal, caution, warning or critical. The speeds of reading and writing
    say when the group will have caught up. `deleted_in` is how long the oldest unread record is safe from
    retention.
    """
    from ottla.explain.lag.outlook import Bounds

    if once and watch:
        raise click.UsageError("--once and --watch exclude each other")
    if metrics_port is not None and not watch:
        raise click.UsageError("--metrics needs --watch: without it nothing would be served for long")
    bounds = Bounds(caution, warning, critical)
    shows_partitions = by_partition or len(groups) == 1

    def show(looks: "Looks") -> list[dict[str, Any]]:
        rows = [
            row
            for group in looks.groups
            for row in (_partition_rows(group, bounds) if shows_partitions else [_group_row(group, bounds)])
        ]
        show_rows(rows, as_json, "there are no groups")
        return rows

    async def work(access: "Access") -> list[dict[str, Any]]:
        import asyncio

        from ottla.explain.lag.looking import look, with_ages, with_speeds

        before = await look(access, groups)
        if once:
            return show(await with_ages(access, before))
        served = None
        if metrics_port is not None:
            from ottla.explain.lag.exporting import LagMetrics

            served = LagMetrics(bounds)
            say(f"metrics: http://127.0.0.1:{served.serve(metrics_port)}/metrics", err=True)
        while True:
            await asyncio.sleep(over_s)
            after = await look(access, groups)
            moving = await with_ages(access, with_speeds(before, after))
            if watch and not as_json and sys.stdout.isatty():
                click.echo(_CLEAR, nl=False)
            rows = show(moving)
            if served is not None:
                served.update(moving, time.time() * 1000)
            if not watch:
                return rows
            before = after

    rows = with_access(properties, work)
    if fail_on is not None and any(_is_alarming(row, fail_on) for row in rows):
        raise click.exceptions.Exit(FOUND)


def _is_alarming(row: dict[str, Any], level: str) -> bool:
    looks = row["looks"]
    return row["deleted_unread"] > 0 or (looks in _LEVELS and _LEVELS.index(looks) >= _LEVELS.index(level))


def _group_row(group: "GroupLook", bounds: "Bounds") -> dict[str, Any]:
    from ottla.explain.lag.outlook import records_deleted_unread, total

    lag = total(item.lag.lag for item in group.partitions)
    return {
        "group": group.group_id,
        "state": group.state or None,
        "members": group.members,
        **_figures(group.partitions, lag, bounds, bare=len(group.bare)),
        "deleted_unread": sum(records_deleted_unread(item.lag) for item in group.partitions),
        "trouble": group.trouble,
    }


def _partition_rows(group: "GroupLook", bounds: "Bounds") -> list[dict[str, Any]]:
    from ottla.explain.lag.outlook import records_deleted_unread

    return [
        {
            "group": group.group_id,
            "topic": item.lag.where.topic,
            "partition": item.lag.where.partition,
            **_figures((item,), item.lag.lag, bounds),
            "deleted_unread": records_deleted_unread(item.lag),
            "client": None if item.lag.member is None else item.lag.member.client_id,
        }
        for item in group.partitions
    ]


def _figures(
    looks: "tuple[PartitionLook, ...]", lag: int | None, bounds: "Bounds", bare: int = 0
) -> dict[str, Any]:
    from ottla.explain.lag.outlook import (
        is_past_end,
        say_outlook,
        seconds_to_deletion,
        seconds_to_zero,
        total_speed,
    )

    now_ms = time.time() * 1000
    ages = [now_ms - item.oldest_unread_ms for item in looks if item.oldest_unread_ms is not None]
    speed = total_speed(looks)
    limits = [limit for item in looks if (limit := seconds_to_deletion(item, now_ms)) is not None]
    # What nobody reads is no part of the lag, so that it must be said in words.
    outlook = f"{bare} unassigned" if bare else say_outlook(looks) if looks else None
    is_known = bool(looks) and not bare and not any(is_past_end(item.lag) for item in looks)
    return {
        "lag": lag,
        "looks": bounds.label(lag),
        "lag_seconds": 0.0 if lag == 0 else _rounded(max(ages) / 1000 if ages else None),
        "reads_per_second": None if speed is None else _rounded(speed.reads),
        "writes_per_second": None if speed is None else _rounded(speed.writes),
        "outlook": outlook,
        "caught_up_in": _rounded(seconds_to_zero(looks)) if is_known else None,
        "deleted_in": _rounded(min(limits, default=None)),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(max(value, 0.0), 1)
