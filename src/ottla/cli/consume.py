"""`ottla consume`: records of a topic on stdout.

It reads partitions itself and belongs to no group, so that looking changes nothing. `--group` joins one.
"""

import sys
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from ottla.cli.cluster import run_client
from ottla.cli.output import json_option
from ottla.cli.profiles import cluster_options
from ottla.cli.templates import Printable, Printer, printer_for
from ottla.cli.times import parse_time_ms

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster
    from ottla.model.ids import TopicPartition

IDLE_POLLS_MAX: Final = 60
"""How often in vain a member of a group asks, half a second each, before it takes that for the end."""
BEGINNING: Final = "beginning"
END: Final = "end"


class Wish(NamedTuple):
    """What is to be read."""

    topic: str
    partitions: tuple[int, ...]
    start: str
    until_ms: int | None
    count_max: int | None
    follows: bool
    read_uncommitted: bool
    is_member: bool


@click.command()
@click.argument("topic")
@cluster_options
@json_option
@click.option("-p", "--partition", "partitions", type=click.IntRange(0), multiple=True, help="Default: all.")
@click.option(
    "-o",
    "--offset",
    "start",
    default=BEGINNING,
    show_default=True,
    help="Where to begin: beginning, end, an offset, -N for the last N, or @TIME as in @2h.",
)
@click.option("--until", metavar="TIME", help="Leave out records from this time on.")
@click.option("-c", "--count", "count_max", type=click.IntRange(1), help="Stop after so many records.")
@click.option("-F", "--follow", is_flag=True, help="Wait for more records, until Ctrl-C.")
@click.option("-f", "--template", help="As in '%t %p %o %k %s\\n'; see `ottla consume --help-template`.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "value", "json")),
    default="text",
    show_default=True,
    help="text: key, tab, value. value: the value alone. json: an object a line.",
)
@click.option("--read-uncommitted", is_flag=True, help="Show records of open and aborted transactions, too.")
@click.option("--group", help="Read as a member of this group, from where it was, and commit.")
@click.option(
    "--help-template",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda *given: _explain(*given),
    help="Explain templates.",
)
def consume(
    properties: dict[str, str],
    as_json: bool,
    topic: str,
    partitions: tuple[int, ...],
    start: str,
    until: str | None,
    count_max: int | None,
    follow: bool,
    template: str | None,
    form: str,
    read_uncommitted: bool,
    group: str | None,
) -> None:
    """Print the records of TOPIC that are there now, or with --follow also those to come."""
    _check_start(start)
    until_ms = None if until is None else parse_time_ms(until, "--until")
    wish = Wish(topic, partitions, start, until_ms, count_max, follow, read_uncommitted, group is not None)
    printer = printer_for("json" if as_json else form, template)
    if group is not None:
        run_client(lambda: _print_all(_read_as_member(properties, wish, group), wish, printer))
    else:
        run_client(lambda: _print_all(_read(properties, wish), wish, printer))


async def _print_all(records: AsyncGenerator[Printable, None], wish: Wish, printer: Printer) -> None:
    out = sys.stdout.buffer
    count = 0
    try:
        async for record in records:
            out.write(printer(record))
            if wish.follows:
                out.flush()
            count += 1
            if count == wish.count_max and not wish.is_member:
                break
    finally:
        await records.aclose()
        out.flush()


async def _read(properties: Mapping[str, str], wish: Wish) -> AsyncGenerator[Printable, None]:
    from ottla.client.admin.settings import AdminSettings
    from ottla.client.security import cluster_for

    settings = AdminSettings.of({"request.timeout.ms": "10000", **properties})
    cluster = cluster_for(settings, retry_timeout_ms=15_000)
    await cluster.start()
    try:
        async for record in _read_partitions(cluster, wish):
            yield record
    finally:
        await cluster.close()


async def _read_partitions(cluster: "Cluster", wish: Wish) -> AsyncGenerator[Printable, None]:
    from ottla.client.fetching import (
        FetchLimits,
        IsolationLevel,
        fetch_once,
        next_offset,
        visible_batches,
    )
    from ottla.client.list_offsets import LATEST, list_offsets
    from ottla.records.batch_records import iter_batch_records

    isolation = IsolationLevel.READ_UNCOMMITTED if wish.read_uncommitted else IsolationLevel.READ_COMMITTED
    partitions = await _partitions(cluster, wish)
    ends = {
        where: found.offset
        for where, found in (
            await list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation)
        ).items()
    }
    positions = await _positions(cluster, wish, partitions, ends, isolation)
    limits = FetchLimits()
    while positions := _unfinished(positions, ends, wish):
        answers = await fetch_once(cluster, positions, isolation=isolation, limits=limits)
        for where, answer in answers.items():
            _raise_for(answer)
            first = positions[where]
            for batch in visible_batches(answer, isolation):
                for record in iter_batch_records(batch):
                    is_wanted = record.offset >= first and (wish.follows or record.offset < ends[where])
                    if is_wanted and (wish.until_ms is None or record.timestamp < wish.until_ms):
                        yield Printable(where.topic, where.partition, *record)
            positions[where] = next_offset(answer.records, first)


def _unfinished(positions: Any, ends: Any, wish: Wish) -> Any:
    return {where: offset for where, offset in positions.items() if wish.follows or offset < ends[where]}


def _raise_for(answer: Any) -> None:
    from ottla.client.errors import raise_for

    raise_for(answer.error_code, f"cannot read {answer.where} from offset {answer.fetch_offset}")


async def _partitions(cluster: "Cluster", wish: Wish) -> "list[TopicPartition]":
    from ottla.cli.failure import Failure
    from ottla.client.errors import BrokerError
    from ottla.model.ids import TopicPartition
    from ottla.wire.error_code import ErrorCode

    view = (await cluster.refresh([wish.topic])).topics.get(wish.topic)
    if view is None or not view.partitions:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code
        raise BrokerError(code, f"cannot read topic {wish.topic!r}")
    if missing := [number for number in wish.partitions if number not in view.partitions]:
        raise Failure(f"{wish.topic} has no partition {missing[0]}, only 0 to {len(view.partitions) - 1}")
    return [TopicPartition(wish.topic, number) for number in sorted(wish.partitions or view.partitions)]


async def _positions(cluster: Any, wish: Wish, partitions: Any, ends: Any, isolation: Any) -> Any:
    from ottla.client.list_offsets import EARLIEST, list_offsets

    if wish.start.startswith("@"):
        time_ms = parse_time_ms(wish.start[1:], "--offset")
        found = await list_offsets(cluster, dict.fromkeys(partitions, time_ms), isolation)
        return {where: found[where].offset if where in found else ends[where] for where in partitions}
    earliest = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST), isolation)
    firsts = {where: earliest[where].offset for where in partitions}
    if wish.start == BEGINNING:
        return firsts
    if wish.start == END:
        return dict(ends)
    number = int(wish.start)
    wanted = {where: number if number >= 0 else ends[where] + number for where in partitions}
    return {where: max(wanted[where], firsts[where]) for where in partitions}


async def _read_as_member(
    properties: Mapping[str, str], wish: Wish, group: str
) -> AsyncGenerator[Printable, None]:
    from ottla.client.consumer import Consumer

    chosen = {
        "auto.offset.reset": "latest" if wish.start == END else "earliest",
        "isolation.level": "read_uncommitted" if wish.read_uncommitted else "read_committed",
        **properties,
        "group.id": group,
        # What was printed is committed, and nothing else.
        "enable.auto.commit": "false",
    }
    left, idle_polls = wish.count_max, 0
    async with Consumer(properties=chosen) as consumer:
        consumer.subscribe([wish.topic])
        while left is None or left > 0:
            records = await consumer.poll(timeout_ms=500, max_records=left)
            for record in records:
                fields = (record.offset, record.timestamp_ms, record.key, record.value, record.headers)
                yield Printable(record.topic, record.partition, *fields)
            if records:
                await consumer.commit()
                left = None if left is None else left - len(records)
            idle_polls = 0 if records else idle_polls + 1
            mine = consumer.assignment()
            has_read_all = bool(mine) and all(consumer.lag(where) == 0 for where in mine)
            if not wish.follows and (has_read_all or idle_polls > IDLE_POLLS_MAX):
                return


def _check_start(start: str) -> None:
    if start in (BEGINNING, END) or start.startswith("@") or start.removeprefix("-").isdigit():
        return
    raise click.BadParameter(
        f"{start!r} is no place to begin: beginning, end, an offset, -N or @TIME", param_hint="--offset"
    )


def _explain(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from ottla.cli import templates

        click.echo(templates.__doc__)
        ctx.exit()
