"""`ottla why`: five questions, answered from evidence."""

from typing import TYPE_CHECKING, Final

import click

from ottla.cli.explain.running import show_answer, with_access
from ottla.cli.naming import group_names, topic_names
from ottla.cli.numbers import PAUSE_S
from ottla.cli.output import json_option
from ottla.cli.profiles import cluster_options
from ottla.cli.times import parse_time_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.explain.access import Access
    from ottla.explain.answer import Answer
    from ottla.explain.evidence.cases import GroupCase, TopicCase

    GroupQuestion = Callable[[GroupCase], Answer]
    TopicQuestion = Callable[[TopicCase], Answer]

over_option = click.option(
    "--over",
    "over_s",
    type=PAUSE_S,
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to watch what moves.",
)
at_option = click.option(
    "--at",
    "at",
    metavar="TIME",
    help="Ask about the past: 2026-01-31T12:00, or 2h for two hours ago. Goes as far back as the journal.",
)
topic_or_group = click.option(
    "--topic",
    "is_topic",
    is_flag=True,
    help="NAME is a topic. Default: a group, if it exists.",
)


@click.group()
def why() -> None:
    """Find out why: silent, twice, lost, order or slow.

    The answer is a cause in one sentence, with its evidence and what to do. Exit codes: 0 if nothing wrong
    was found, 10 for a cause, 11 for unknown. On Apache Kafka, which keeps no journal, the answer says what
    could not be known.
    """


@why.command()
@click.argument("group", shell_complete=group_names)
@cluster_options
@json_option
@click.option("--client", help="Only the member with this client id.")
@click.option("--topic", help="The topic that was expected.")
@over_option
@at_option
def silent(
    group: str,
    properties: dict[str, str],
    as_json: bool,
    client: str | None,
    topic: str | None,
    over_s: float,
    at: str | None,
) -> None:
    """Find out why the consumers of GROUP get nothing."""
    at_ms = _at_ms(at)

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.silent import why_silent

        return await _ask_group(access, group, over_s, at_ms, lambda case: why_silent(case, client, topic))

    show_answer(with_access(properties, work), as_json)


@why.command()
@click.argument("name", shell_complete=group_names)
@cluster_options
@json_option
@topic_or_group
@at_option
def twice(name: str, properties: dict[str, str], as_json: bool, is_topic: bool, at: str | None) -> None:
    """Find out why records were written or delivered twice: for the group or topic NAME."""
    at_ms = _at_ms(at)

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.twice import why_topic_twice, why_twice

        if is_topic or not await _is_group(access, name):
            return await _ask_topic(access, name, at_ms, why_topic_twice)
        return await _ask_group(access, name, 0.0, at_ms, why_twice)

    show_answer(with_access(properties, work), as_json)


@why.command()
@click.argument("name", shell_complete=group_names)
@cluster_options
@json_option
@topic_or_group
@at_option
def lost(name: str, properties: dict[str, str], as_json: bool, is_topic: bool, at: str | None) -> None:
    """Find out why records are missing: for the group that did not get them, or the topic NAME."""
    at_ms = _at_ms(at)

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.lost import why_lost, why_topic_lost

        if is_topic or not await _is_group(access, name):
            return await _ask_topic(access, name, at_ms, why_topic_lost)
        return await _ask_group(access, name, 0.0, at_ms, why_lost)

    show_answer(with_access(properties, work), as_json)


@why.command()
@click.argument("topic", shell_complete=topic_names)
@cluster_options
@json_option
@click.option("--key", help="Only the records with this key.")
@at_option
def order(topic: str, properties: dict[str, str], as_json: bool, key: str | None, at: str | None) -> None:
    """Find out why records of TOPIC are not in order."""
    at_ms = _at_ms(at)

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.order import why_order

        wanted = None if key is None else key.encode()
        return await _ask_topic(access, topic, at_ms, lambda case: why_order(case, wanted))

    show_answer(with_access(properties, work), as_json)


@why.command()
@click.argument("name", shell_complete=group_names)
@cluster_options
@json_option
@topic_or_group
@over_option
@at_option
def slow(
    name: str, properties: dict[str, str], as_json: bool, is_topic: bool, over_s: float, at: str | None
) -> None:
    """Find out why the group NAME falls behind, or why writing to the topic NAME is slow."""
    at_ms = _at_ms(at)

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.slow import why_slow, why_topic_slow

        if is_topic or not await _is_group(access, name):
            return await _ask_topic(access, name, at_ms, why_topic_slow)
        return await _ask_group(access, name, over_s, at_ms, why_slow)

    show_answer(with_access(properties, work), as_json)


_EARLIEST_MS: Final = 1_000_000_000_000
"""No cluster was there in 2001. A smaller number has lost its unit, or is of seconds."""


async def _is_group(access: "Access", name: str) -> bool:
    return any(item.group_id == name for item in await access.admin.groups.list())


def _at_ms(at: str | None) -> int | None:
    if at is None:
        return None
    at_ms = parse_time_ms(at, "--at")
    if at_ms < _EARLIEST_MS:
        raise click.BadParameter(
            f"{at!r} is {at_ms} ms after 1970 began: write 2026-01-31T12:00, or 10m for ten minutes ago",
            param_hint="--at",
        )
    return at_ms


async def _ask_group(
    access: "Access", name: str, over_s: float, at_ms: int | None, why: "GroupQuestion"
) -> "Answer":
    """Ask a question of a group, as it is or as it was."""
    from ottla.explain.evidence.cases import gather_group
    from ottla.explain.evidence.past import group_at, of_the_past

    if at_ms is None:
        return why(await gather_group(access, name, over_s, with_log=True))
    then = group_at(await gather_group(access, name, 0.0, with_log=True), at_ms)
    return of_the_past(why(then), then)


async def _ask_topic(access: "Access", name: str, at_ms: int | None, why: "TopicQuestion") -> "Answer":
    """Ask a question of a topic, as it is or as it was."""
    from ottla.explain.evidence.cases import gather_topic
    from ottla.explain.evidence.past import of_the_past, topic_at

    case = await gather_topic(access, name)
    if at_ms is None:
        return why(case)
    then = topic_at(case, at_ms)
    return of_the_past(why(then), then)
