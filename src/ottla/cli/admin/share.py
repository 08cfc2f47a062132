"""`ottla share`: share groups, which are queues: what is left to do, and where they go on."""

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.admin.resets import Target, plan_rows, reset_options, show_plan
from ottla.cli.cluster import failed_items, run_client, with_admin
from ottla.cli.failure import Failure
from ottla.cli.numbers import COUNT
from ottla.cli.output import confirm, json_option, say, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from ottla.cli.records.templates import Printable
    from ottla.client.admin import Admin


BEGINNING_POLLS_MAX: Final = 10
"""How often `ottla share consume` asks without a result before a partition counts as empty."""


@click.group()
def share() -> None:
    """List and change the share groups of a cluster, and work on their records."""


@share.command("list")
@cluster_options
@json_option
@click.option("--state", "states", multiple=True, help="Only groups in this state: Stable, Empty or Dead.")
def list_groups(properties: dict[str, str], as_json: bool, states: tuple[str, ...]) -> None:
    """List share groups."""

    async def work(admin: "Admin") -> list[dict[str, Any]]:
        return [
            {
                "group": item.group_id,
                "state": item.state,
                "coordinator": item.coordinator,
                "lag": _total(await admin.share_groups.offsets(item.group_id)),
            }
            for item in await admin.groups.list(states=states, types=("share",))
        ]

    show_rows(with_admin(properties, work), as_json, "there are no share groups")


@share.command()
@click.argument("name")
@cluster_options
@json_option
def describe(properties: dict[str, str], as_json: bool, name: str) -> None:
    """Describe the share group NAME: its members, and what is left to deliver in each partition."""

    async def work(admin: "Admin") -> tuple[Any, Any]:
        return await admin.share_groups.describe(name), await admin.share_groups.offsets(name)

    description, offsets = with_admin(properties, work)
    facts = {
        "group": name,
        "state": description.state,
        "assignor": description.assignor,
        "coordinator": description.coordinator,
        "lag": _total(offsets),
    }
    rows = [
        {
            "topic": where.topic,
            "partition": where.partition,
            "start_offset": at.start_offset,
            "lag": at.lag,
            "members": sum(where in member.assignment for member in description.members),
        }
        for where, at in sorted(offsets.items())
    ]
    members = [
        {
            "member": member.member_id,
            "client": member.client_id,
            "host": member.host,
            "topics": ", ".join(member.subscribed_topics),
            "partitions": len(member.assignment),
        }
        for member in description.members
    ]
    if as_json:
        show_one({**facts, "members": members, "partitions": rows}, as_json)
        return
    show_one({**facts, "members": len(members)}, as_json)
    say()
    show_rows(rows, as_json, "it has not begun to read any topic")
    if members:
        say()
        show_rows(members, as_json, "")


@share.command()
@click.argument("name")
@cluster_options
@json_option
@click.option("--topic", "topics", multiple=True, help="Only this topic. Default: all topics of the group.")
@reset_options
def reset(
    properties: dict[str, str],
    as_json: bool,
    name: str,
    topics: tuple[str, ...],
    target: Target,
    execute: bool,
) -> None:
    """Reset the share group NAME, which must have no members. Shows a plan; --execute applies it.

    Records after the new offset are delivered again, also those that were done.
    """

    async def work(admin: "Admin") -> tuple[Any, Any]:
        before = await admin.share_groups.offsets(name)
        plan = await admin.share_groups.plan_reset(name, topics=topics or None, **target.for_plan())
        if execute and plan:
            results = await admin.share_groups.alter_offsets(name, plan)
            if results.failed:
                raise failed_items(results.failed)
        return before, plan

    before, plan = with_admin(properties, work)
    rows = plan_rows({where: one.start_offset for where, one in before.items()}, plan)
    if not rows:
        raise Failure(f"share group {name} has not begun to read any topic: name a --topic")
    show_plan(rows, as_json, execute, f"share group {name} goes on at these offsets")


@share.command("delete-offsets")
@click.argument("name")
@click.argument("topics", nargs=-1, required=True)
@cluster_options
@json_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_offsets(
    properties: dict[str, str], as_json: bool, name: str, topics: tuple[str, ...], yes: bool
) -> None:
    """Make the share group NAME, which must have no members, forget TOPICS."""
    confirm(f"make share group {name} forget {', '.join(topics)}?", yes)
    results = with_admin(properties, lambda admin: admin.share_groups.delete_offsets(name, topics))
    if results.failed:
        raise failed_items(results.failed)
    show_done(f"share group {name} has forgotten {', '.join(topics)}", as_json, forgotten=list(topics))


@share.command()
@click.argument("name")
@click.argument("topics", nargs=-1, required=True)
@cluster_options
@json_option
@click.option("-c", "--count", "count_max", type=COUNT, help="Stop after this many records.")
@click.option("-F", "--follow", is_flag=True, help="Wait for more records until Ctrl-C.")
@click.option(
    "--acknowledge",
    "kind",
    type=click.Choice(("accept", "release", "reject")),
    default="accept",
    show_default=True,
    help="accept: they are done. release: deliver them again. reject: never deliver them again.",
)
@click.option("-f", "--template", help="As in `ottla consume`. For example '%t %p %o %k %s\\n'.")
def consume(
    properties: dict[str, str],
    as_json: bool,
    name: str,
    topics: tuple[str, ...],
    count_max: int | None,
    follow: bool,
    kind: str,
    template: str | None,
) -> None:
    """Print records of TOPICS as a member of the share group NAME, and acknowledge them.

    A group that does not exist begins at the end of the topics, unless its share.auto.offset.reset says
    otherwise: see `ottla config`.
    """
    from ottla.cli.records.consume import print_all
    from ottla.cli.records.templates import Style, printer_for

    printer = printer_for("json" if as_json else "text", template, Style())
    records = _work_on(properties, name, topics, count_max, follow, kind)
    count = run_client(lambda: print_all(records, printer, None, flushes=True))
    if not count and not as_json:
        say(f"no records: share group {name} has nothing left to deliver", err=True)


async def _work_on(
    properties: "Mapping[str, str]",
    name: str,
    topics: tuple[str, ...],
    count_max: int | None,
    follow: bool,
    kind: str,
) -> "AsyncGenerator[Printable, None]":
    from ottla.cli.records.consume import IDLE_POLLS_MAX, POLL_MS
    from ottla.cli.records.templates import Printable
    from ottla.client.admin import Admin
    from ottla.client.share import AcknowledgeType, ShareConsumer

    chosen = {
        **properties,
        "group.id": name,
        "share.acknowledgement.mode": "explicit",
        # What is not printed must not be locked.
        "share.acquire.mode": "batch_optimized" if count_max is None else "record_limit",
    }
    left, idle_polls = count_max, 0
    async with ShareConsumer(properties=chosen) as consumer, Admin(properties=properties) as admin:
        # Otherwise it would wait for a topic whose name was misspelt, or that was typed before the group.
        for missing in (await admin.topics.describe_many(topics)).failed.values():
            raise missing
        consumer.subscribe(topics)
        while left is None or left > 0:
            records = await consumer.poll(POLL_MS, left)
            for record in records:
                fields = (record.offset, record.timestamp_ms, record.key, record.value, record.headers)
                yield Printable(record.topic, record.partition, *fields)
                consumer.acknowledge(record, AcknowledgeType[kind.upper()])
            if records:
                await consumer.commit()
                left = None if left is None else left - len(records)
            idle_polls = 0 if records else idle_polls + 1
            if follow or records or not consumer.assignment():
                continue
            if idle_polls > IDLE_POLLS_MAX:
                return
            offsets = await admin.share_groups.offsets(name)
            # A partition that is not there yet may have records to deliver as soon as its leader begins.
            has_begun = offsets.keys() >= consumer.assignment() or idle_polls > BEGINNING_POLLS_MAX
            if has_begun and _total(offsets) == 0:
                return


def _total(offsets: Any) -> int | None:
    """Return how many records are left in all partitions, or None where a broker does not tell."""
    lags = [at.lag for at in offsets.values()]
    return None if None in lags else sum(lags)
