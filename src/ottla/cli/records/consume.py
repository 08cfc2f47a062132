"""`ottla consume`: records of topics on stdout.

It reads partitions itself and belongs to no group, so that looking changes nothing. `--group` joins one.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli import output
from ottla.cli.cluster import run_client
from ottla.cli.naming import topic_names
from ottla.cli.numbers import COUNT, OFFSET, PARTITION
from ottla.cli.places import Kind, Place, parse_range
from ottla.cli.profiles import cluster_options
from ottla.cli.records.templates import Printable, Printer, Style, printer_for, unescape
from ottla.cli.times import parse_time_ms
from ottla.cli.topic_patterns import as_one_pattern, check_patterns, has_patterns
from ottla.records.json_records import ENCODINGS, PLAIN

if TYPE_CHECKING:
    from ottla.cli.records.reading import Wish

IDLE_POLLS_MAX: Final = 60
"""How often a member of a group asks without a result, half a second each, before that is the end."""
POLL_MS: Final = 500


@click.command()
@click.argument("topics", metavar="TOPICS...", nargs=-1, shell_complete=topic_names)
@cluster_options
@click.option("-J", "--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("-t", "--topic", "more_topics", multiple=True, help="A topic to read. Same as in TOPICS.")
@click.option("-p", "--partition", "partitions", type=PARTITION, multiple=True, help="Default: all.")
@click.option(
    "-o",
    "--offset",
    "places",
    multiple=True,
    help="Where to begin: beginning (default), end, an offset, -N for the last N records of each partition, "
    "or @TIME or s@TIME, for example @2h. Where to end: e@TIME.",
)
@click.option("--until", metavar="TIME", help="Stop before this time. Same as e@TIME.")
@click.option("--until-offset", type=OFFSET, help="Stop before this offset.")
@click.option("-c", "--count", "count_max", type=COUNT, help="Stop after this many records.")
@click.option("-F", "--follow", is_flag=True, help="Wait for more records until Ctrl-C.")
@click.option(
    "-e", "--exit", "exits", is_flag=True, help="Exit at the end. This is the default without --follow."
)
@click.option(
    "-f", "--template", help="For example '%t %p %o %k %s\\n'. See `ottla consume --help-template`."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "value", "json")),
    default="text",
    show_default=True,
    help="text: key, tab, value. value: only the value. json: one object per line.",
)
@click.option(
    "--key-format", type=click.Choice(ENCODINGS), default=PLAIN, show_default=True, help="How to print keys."
)
@click.option(
    "--value-format",
    type=click.Choice(ENCODINGS),
    default=PLAIN,
    show_default=True,
    help="How to print values.",
)
@click.option(
    "-K", "--key-delimiter", help="Print this after each key. Default: a tab after keys that are not null."
)
@click.option("-D", "--delimiter", default="\\n", show_default=True, help="Print this after each record.")
@click.option("-Z", "--null", "shows_null", is_flag=True, help="Print NULL for null keys and values.")
@click.option("-u", "--unbuffered", is_flag=True, help="Flush the output after each record.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors on stderr.")
@click.option("--skip-damaged", is_flag=True, help="Skip damaged batches with a warning. Not with --group.")
@click.option("--read-uncommitted", is_flag=True, help="Also show records of open and aborted transactions.")
@click.option(
    "--group",
    "-G",
    help="Read as a member of this group, from its committed offsets, and commit. With --partition, read "
    "these partitions without joining. --offset applies to partitions without a committed offset.",
)
@click.option(
    "--registry",
    metavar="URL",
    envvar="OTTLA_REGISTRY",
    help="Print keys and values as JSON whose schemas this registry knows.",
)
@click.option(
    "--registry-user", metavar="NAME:PASSWORD", envvar="OTTLA_REGISTRY_USER", help="How to log in to it."
)
@click.option(
    "--help-template",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda *given: _explain(*given),
    help="Show the syntax of templates and exit.",
)
def consume(
    properties: dict[str, str],
    as_json: bool,
    topics: tuple[str, ...],
    more_topics: tuple[str, ...],
    partitions: tuple[int, ...],
    places: tuple[str, ...],
    until: str | None,
    until_offset: int | None,
    count_max: int | None,
    follow: bool,
    exits: bool,
    template: str | None,
    form: str,
    key_format: str,
    value_format: str,
    key_delimiter: str | None,
    delimiter: str,
    shows_null: bool,
    unbuffered: bool,
    quiet: bool,
    skip_damaged: bool,
    read_uncommitted: bool,
    group: str | None,
    registry: str | None,
    registry_user: str | None,
) -> None:
    """Print the records of TOPICS that exist now. With --follow, also print new ones.

    A topic that begins with ^ is a regular expression: '^orders\\.' reads all topics that start with it.
    """
    topics += more_topics
    if not topics:
        raise click.UsageError("no topic given: name at least one topic to read")
    check_patterns(topics)
    start, until_ms = parse_range(places)
    if until is not None:
        until_ms = parse_time_ms(until, "--until")
    if follow and exits:
        raise click.UsageError("--follow waits for more records and --exit stops at the end: choose one")
    style = Style(
        None if key_delimiter is None else unescape(key_delimiter),
        unescape(delimiter),
        b"NULL" if shows_null else None,
        key_format,
        value_format,
    )
    printer = printer_for("json" if as_json else form, template, style)
    from ottla.cli.records.reading import Wish

    wish = Wish(
        topics,
        partitions,
        start or Place(Kind.BEGINNING),
        until_ms,
        until_offset,
        follow,
        read_uncommitted,
        skip_damaged,
    )
    say = _silent if quiet else _say
    if group is not None:
        _check_group_wish(wish, group)
        # A member counts by itself: what is printed last has to be committed.
        records, flushes, count_max = _read_as_member(properties, wish, group, count_max, say), True, None
    else:
        records, flushes = _read(properties, wish, say), follow or unbuffered
    if registry is not None:
        from ottla.cli.schemas.decoding import decoded

        records = decoded(records, registry, registry_user)
    count = run_client(lambda: print_all(records, printer, count_max, flushes))
    if not count and (start is None or start.kind is not Kind.END):
        say(f"no records: {_nothing_there(wish, group)}")


async def print_all(
    records: AsyncGenerator[Printable, None], printer: Printer, count_max: int | None, flushes: bool
) -> int:
    """Print records, and return how many there were."""
    out = sys.stdout.buffer
    is_terminal = sys.stdout.isatty()
    count = 0
    try:
        async for record in records:
            printed = printer(record)
            # A program gets the bytes as they are. A terminal would obey what is in them.
            out.write(_shown(printed) if is_terminal else printed)
            if flushes:
                out.flush()
            count += 1
            if count == count_max:
                break
    finally:
        await records.aclose()
        out.flush()
    return count


def _shown(printed: bytes) -> bytes:
    from ottla.model.shown import harmless

    return harmless(printed.decode(errors="backslashreplace")).encode()


async def _read(
    properties: Mapping[str, str], wish: "Wish", say: Callable[[str], None]
) -> AsyncGenerator[Printable, None]:
    from ottla.cli.records.reading import Reading
    from ottla.client.admin.settings import AdminSettings
    from ottla.client.security import cluster_for

    settings = AdminSettings.of({"request.timeout.ms": "10000", **properties})
    cluster = cluster_for(settings, retry_timeout_ms=15_000)
    await cluster.start()
    try:
        async for record in Reading(cluster, wish, say).records():
            yield record
    finally:
        await cluster.close()


def _check_group_wish(wish: "Wish", group: str) -> None:
    """Refuse what a group could not do without committing records that nobody saw."""
    if wish.start.kind not in (Kind.BEGINNING, Kind.END):
        raise click.UsageError(
            "with --group, --offset must be beginning or end, and applies to partitions without a committed "
            f"offset; use `ottla group reset {group}` to move the group"
        )
    if wish.until_ms is not None or wish.until_offset is not None:
        raise click.UsageError(
            "--until and --until-offset do not work with --group, which would commit the records that were "
            "left out: use --count"
        )
    if wish.skips_damaged:
        raise click.UsageError("--skip-damaged does not work with --group")
    if wish.partitions and has_patterns(wish.topics):
        raise click.UsageError("--partition with --group needs topic names, not patterns")


async def _read_as_member(
    properties: Mapping[str, str],
    wish: "Wish",
    group: str,
    count_max: int | None,
    say: Callable[[str], None],
) -> AsyncGenerator[Printable, None]:
    from ottla.client.consumer import Consumer

    chosen = {
        "auto.offset.reset": "latest" if wish.start.kind is Kind.END else "earliest",
        "isolation.level": "read_uncommitted" if wish.read_uncommitted else "read_committed",
        # A typing error must not make a topic.
        "allow.auto.create.topics": "false",
        **properties,
        "group.id": group,
        # What was printed is committed, and nothing else.
        "enable.auto.commit": "false",
    }
    left, idle_polls = count_max, 0
    async with Consumer(properties=chosen) as consumer:
        await _choose(consumer, wish)
        while left is None or left > 0:
            records = await consumer.poll(timeout_ms=POLL_MS, max_records=left)
            for record in records:
                fields = (record.offset, record.timestamp_ms, record.key, record.value, record.headers)
                yield Printable(record.topic, record.partition, *fields)
            if records:
                await _commit(consumer, say)
                left = None if left is None else left - len(records)
            idle_polls = 0 if records else idle_polls + 1
            mine = consumer.assignment()
            has_read_all = bool(mine) and all(consumer.lag(where) == 0 for where in mine)
            if not wish.follows and (has_read_all or idle_polls > IDLE_POLLS_MAX):
                return


async def _choose(consumer: Any, wish: "Wish") -> None:
    """Join the group, or take the partitions that were named, beside it."""
    from ottla.cli.failure import Failure
    from ottla.model.ids import TopicPartition

    if has_patterns(wish.topics):
        consumer.subscribe(pattern=as_one_pattern(wish.topics))
        return
    for topic in wish.topics:
        there = {where.partition for where in await consumer.partitions_for(topic)}
        if not there:
            raise Failure(f"topic {topic!r} does not exist; `ottla topic list` lists the topics")
        if missing := set(wish.partitions) - there:
            raise Failure(f"{topic} has no partition {min(missing)}, only 0 to {max(there)}")
    if wish.partitions:
        consumer.assign(
            [TopicPartition(topic, number) for topic in wish.topics for number in wish.partitions]
        )
    else:
        consumer.subscribe(wish.topics)


async def _commit(consumer: Any, say: Callable[[str], None]) -> None:
    from ottla.client.consumer import CommitFailed, RebalanceInProgress

    try:
        await consumer.commit()
    except RebalanceInProgress:
        # What is still ours is committed after the next records, or when it is given up.
        return
    except CommitFailed as error:
        if not consumer.subscription():
            raise
        say(f"{error}; records that were already printed may be read again")


def _nothing_there(wish: "Wish", group: str | None) -> str:
    names = ", ".join(wish.topics)
    if group is not None:
        return f"group {group} has already read all of {names}"
    if wish.start.kind is Kind.BEGINNING and wish.until_ms is None and wish.until_offset is None:
        return f"{names} is empty"
    return f"{names} has no records in that range"


def _say(sentence: str) -> None:
    output.say(sentence, err=True)


def _silent(_sentence: str) -> None:
    """Say nothing."""


def _explain(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from ottla.cli.records import templates

        output.say(templates.__doc__ or "")
        ctx.exit()
