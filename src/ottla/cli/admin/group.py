"""`ottla group`: groups of all kinds, how far behind they are, and where they go on."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.admin.group_offsets import delete_offsets, export, read_offsets, remove_member
from ottla.cli.admin.resets import Target, from_file_option, plan_rows, reset_options, show_plan
from ottla.cli.cluster import failed_items, with_admin
from ottla.cli.explain.running import with_access
from ottla.cli.failure import Failure
from ottla.cli.naming import did_you_mean, group_names
from ottla.cli.numbers import PAUSE_S
from ottla.cli.output import confirm, json_option, say, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options
from ottla.cli.quantities import seconds_text

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.descriptions import GroupListing
    from ottla.explain.access import Access


_LEDGER: Final = "ledger"


@click.group()
def group() -> None:
    """List and change the groups of a cluster: consumer groups, share groups, streams groups."""


for command in (export, delete_offsets, remove_member):
    group.add_command(command)


@group.command("list")
@cluster_options
@json_option
@click.option(
    "--state", "states", multiple=True, help="Only groups in this state, for example Stable or Empty."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    help="Only groups of this type: classic, consumer, share or streams.",
)
@click.option("--lag", "with_lag", is_flag=True, help="Also show the lag of each group.")
def list_groups(
    properties: dict[str, str],
    as_json: bool,
    states: tuple[str, ...],
    types: tuple[str, ...],
    with_lag: bool,
) -> None:
    """List groups."""

    async def work(admin: "Admin") -> list[dict[str, Any]]:
        rows = []
        for item in await admin.groups.list(states=states, types=types):
            row: dict[str, Any] = {
                "group": item.group_id,
                "type": item.type or None,
                "state": item.state or None,
                "protocol": item.protocol_type or None,
                "coordinator": item.coordinator,
            }
            if with_lag:
                lag = await _lag_of(admin, item)
                row |= {"lag": lag, "looks": _looks(item.group_id, lag)}
            rows.append(row)
        return rows

    show_rows(with_admin(properties, work), as_json, "there are no groups")


@group.command()
@click.argument("name", shell_complete=group_names)
@cluster_options
@json_option
@click.option(
    "--watch",
    "watch_s",
    type=PAUSE_S,
    metavar="SECONDS",
    help="Measure twice, this many seconds apart, and show how fast the group reads and its topics grow.",
)
def describe(properties: dict[str, str], as_json: bool, name: str, watch_s: float | None) -> None:
    """Describe the group NAME: its members, and its lag in records and in time for each partition."""

    async def work(access: "Access") -> tuple[Any, ...]:
        import asyncio

        from ottla.client.errors import BrokerError
        from ottla.explain.lag.outlook import velocities
        from ottla.explain.lag.unread import oldest_unread_ms

        admin = access.admin
        try:
            description = await admin.groups.describe(name)
        except BrokerError as error:
            if any(item.group_id == name for item in await admin.groups.list(types=["share"])):
                raise Failure(
                    f"{name!r} is a share group: `ottla share describe {name}` describes it"
                ) from None
            if error.error_code.name != "GROUP_ID_NOT_FOUND":
                raise
            raise await _no_group(admin, name) from error
        lags = await admin.group_offsets.lag(name)
        if not lags and description.state.lower() == "dead":
            raise await _no_group(admin, name)
        speeds = {}
        if watch_s is not None:
            started = time.monotonic()
            await asyncio.sleep(watch_s)
            before, lags = lags, await admin.group_offsets.lag(name)
            speeds = velocities(before, lags, time.monotonic() - started)
        unread = await oldest_unread_ms(access.cluster, lags)
        return description, lags, speeds, unread

    description, lags, speeds, unread = with_access(properties, work)
    rows = _partition_rows(lags, speeds, unread, has_speeds=watch_s is not None)
    lag = _total(item.lag for item in lags)
    facts = {
        "group": name,
        "type": description.type,
        "state": description.state,
        "assignor": description.assignor or None,
        "coordinator": description.coordinator,
        "lag": lag,
        "looks": _looks(name, lag),
    }
    members = _member_rows(description, lags)
    if as_json:
        show_one({**facts, "members": members, "partitions": rows}, as_json)
        return
    show_one({**facts, "members": len(members)}, as_json)
    say()
    if facts["looks"] == _LEDGER:
        say("the ledger of a pipeline: its offsets count the batches that were delivered\n")
    shown = [{**row, "lag_seconds": _age(row["lag_seconds"])} for row in rows]
    show_rows(shown, as_json, "it has no members and no committed offsets")
    if members:
        say()
        show_rows(members, as_json, "")


async def _no_group(admin: "Admin", name: str) -> Failure:
    meant = did_you_mean(name, [item.group_id for item in await admin.groups.list()])
    return Failure(f"group {name!r} does not exist{meant or '; `ottla group list` lists the groups'}")


def _looks(group_id: str, lag: int | None) -> str | None:
    """Return how a group looks in a word."""
    # Imported only here, as all that a command needs and its help does not.
    from ottla.model.ledger_groups import is_ledger

    return _LEDGER if is_ledger(group_id) else _label(lag)


def _age(seconds: float | None) -> str | None:
    return None if seconds is None else seconds_text(seconds)


def _label(lag: int | None) -> str | None:
    from ottla.explain.lag.outlook import Bounds

    return Bounds().label(lag)


async def _lag_of(admin: "Admin", item: "GroupListing") -> int | None:
    """Return the lag of a group by its committed offsets. Share groups have none."""
    if item.type.lower() == "share":
        return None
    return _total(part.lag for part in await admin.group_offsets.lag(item.group_id))


def _total(lags: Iterable[int | None]) -> int | None:
    from ottla.explain.lag.outlook import total

    return total(lags)


@group.command()
@click.argument("name", shell_complete=group_names)
@cluster_options
@json_option
@click.option(
    "--topic", "topics", multiple=True, help="Only this topic. Default: all topics with committed offsets."
)
@reset_options
@from_file_option
def reset(
    properties: dict[str, str],
    as_json: bool,
    name: str,
    topics: tuple[str, ...],
    target: Target,
    execute: bool,
) -> None:
    """Reset the offsets of the group NAME, which must have no members. Shows a plan; --execute applies it."""

    async def work(admin: "Admin") -> tuple[Any, Any]:
        before = await admin.group_offsets.list(name)
        plan = (
            await admin.group_offsets.plan_reset(name, topics=topics or None, **target.for_plan())
            if target.file is None
            else read_offsets(target.file)
        )
        if execute and plan:
            results = await admin.group_offsets.alter(name, plan)
            if results.failed:
                raise failed_items(results.failed)
            # What is shown is what the group has now, not what was meant.
            now = await admin.group_offsets.list(name, tuple(plan))
            plan = {where: now[where].offset for where in plan if where in now}
        return before, plan

    before, plan = with_admin(properties, work)
    rows = plan_rows({where: one.offset for where, one in before.items()}, plan)
    if not rows:
        raise Failure(f"group {name} has no committed offsets: name a --topic")
    show_plan(rows, as_json, execute, _say_moved(name, rows))


def _say_moved(name: str, rows: list[dict[str, Any]]) -> str:
    moved = sum(row["offset"] != row["new_offset"] for row in rows)
    stayed = len(rows) - moved
    partitions = "partition" if moved == 1 else "partitions"
    if not moved:
        return f"group {name} already has these offsets: nothing changed"
    return f"moved group {name} in {moved} {partitions}" + (
        f"; {stayed} already had that offset" * bool(stayed)
    )


@group.command()
@click.argument("names", nargs=-1, required=True, shell_complete=group_names)
@cluster_options
@json_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(properties: dict[str, str], as_json: bool, names: tuple[str, ...], yes: bool) -> None:
    """Delete the groups NAMES and their offsets. They must have no members."""
    confirm(f"delete {', '.join(names)} and all their offsets?", yes)
    results = with_admin(properties, lambda admin: admin.groups.delete_many(names))
    if results.failed:
        raise failed_items(results.failed)
    show_done(f"deleted {', '.join(names)}", as_json, deleted=list(names))


def _partition_rows(lags: Any, speeds: Any, unread: Any, *, has_speeds: bool) -> list[dict[str, Any]]:
    now_ms = time.time() * 1000
    rows = []
    for item in lags:
        row: dict[str, Any] = {
            "topic": item.where.topic,
            "partition": item.where.partition,
            "offset": item.committed,
            "next_offset": item.log_end_offset,
            "lag": item.lag,
            "looks": _label(item.lag),
            "lag_seconds": 0.0 if item.lag == 0 else None,
            "member": None if item.member is None else item.member.member_id,
        }
        if item.where in unread:
            oldest_ms = unread[item.where]
            row["lag_seconds"] = 0.0 if oldest_ms is None else max(0.0, round((now_ms - oldest_ms) / 1000, 1))
        if has_speeds:
            speed = speeds.get(item.where)
            row["reads_per_second"] = None if speed is None else round(speed.reads, 1)
            row["writes_per_second"] = None if speed is None else round(speed.writes, 1)
        rows.append(row)
    return rows


def _member_rows(description: Any, lags: Any) -> list[dict[str, Any]]:
    by_member: dict[str, list[int | None]] = {}
    for item in lags:
        if item.member is not None:
            by_member.setdefault(item.member.member_id, []).append(item.lag)
    return [
        {
            "member": member.member_id,
            "instance": member.instance_id,
            "client": member.client_id,
            "host": member.host,
            "partitions": len(member.assignment),
            "lag": _total(by_member.get(member.member_id, [])),
        }
        for member in description.members
    ]
