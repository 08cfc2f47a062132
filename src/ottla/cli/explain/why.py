"""`ottla why`: four questions, answered from evidence."""

from typing import TYPE_CHECKING

import click

from ottla.cli.explain.running import show_answer, with_access
from ottla.cli.numbers import PAUSE_S
from ottla.cli.output import json_option
from ottla.cli.profiles import cluster_options
from ottla.cli.times import parse_time_ms

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.answer import Answer
    from ottla.explain.evidence.cases import GroupCase, TopicCase

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
    """Find out why: silent, twice, order or slow.

    The answer is a cause in one sentence, with its evidence and what to do. Exit codes: 0 if nothing wrong
    was found, 10 for a cause, 11 for unknown. On Apache Kafka, which keeps no journal, the answer says what
    could not be known.
    """


@why.command()
@click.argument("group")
@cluster_options
@json_option
@click.option("--client", help="Only the member with this client id.")
@click.option("--topic", help="The topic that was expected.")
@over_option
def silent(
    group: str,
    properties: dict[str, str],
    as_json: bool,
    client: str | None,
    topic: str | None,
    over_s: float,
) -> None:
    """Find out why the consumers of GROUP get nothing."""

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.silent import why_silent
        from ottla.explain.evidence.cases import gather_group

        return why_silent(await gather_group(access, group, over_s, with_log=True), client, topic)

    show_answer(with_access(properties, work), as_json)


@why.command()
@click.argument("name")
@cluster_options
@json_option
@topic_or_group
@at_option
def twice(name: str, properties: dict[str, str], as_json: bool, is_topic: bool, at: str | None) -> None:
    """Find out why records were written or delivered twice: for the group or topic NAME."""
    at_ms = None if at is None else parse_time_ms(at, "--at")

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.twice import why_topic_twice, why_twice
        from ottla.explain.evidence.cases import gather_group, gather_topic

        if is_topic or not await _is_group(access, name):
            return why_topic_twice(_topic_then(await gather_topic(access, name), at_ms))
        return why_twice(_then(await gather_group(access, name, 0.0, with_log=True), at_ms))

    show_answer(with_access(properties, work), as_json)


@why.command()
@click.argument("topic")
@cluster_options
@json_option
@click.option("--key", help="Only the records with this key.")
@at_option
def order(topic: str, properties: dict[str, str], as_json: bool, key: str | None, at: str | None) -> None:
    """Find out why records of TOPIC are not in order."""
    at_ms = None if at is None else parse_time_ms(at, "--at")

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.order import why_order
        from ottla.explain.evidence.cases import gather_topic

        case = _topic_then(await gather_topic(access, topic), at_ms)
        return why_order(case, None if key is None else key.encode())

    show_answer(with_access(properties, work), as_json)


@why.command()
@click.argument("name")
@cluster_options
@json_option
@topic_or_group
@over_option
def slow(name: str, properties: dict[str, str], as_json: bool, is_topic: bool, over_s: float) -> None:
    """Find out why the group NAME falls behind, or why writing to the topic NAME is slow."""

    async def work(access: "Access") -> "Answer":
        from ottla.explain.causes.slow import why_slow, why_topic_slow
        from ottla.explain.evidence.cases import gather_group, gather_topic

        if is_topic or not await _is_group(access, name):
            return why_topic_slow(await gather_topic(access, name))
        return why_slow(await gather_group(access, name, over_s, with_log=True))

    show_answer(with_access(properties, work), as_json)


async def _is_group(access: "Access", name: str) -> bool:
    return any(item.group_id == name for item in await access.admin.groups.list())


def _then(case: "GroupCase", at_ms: int | None) -> "GroupCase":
    """Return what was known at a time."""
    if at_ms is None:
        return case
    from dataclasses import replace

    history = case.history._replace(
        commits=tuple(one for one in case.history.commits if one.at_ms <= at_ms),
        generations=tuple(one for one in case.history.generations if one.at_ms <= at_ms),
    )
    return replace(case, now_ms=at_ms, journal=case.journal.until(at_ms), history=history)


def _topic_then(case: "TopicCase", at_ms: int | None) -> "TopicCase":
    """Return what was known of a topic at a time."""
    if at_ms is None:
        return case
    from dataclasses import replace

    sample = case.sample._replace(
        records=tuple(one for one in case.sample.records if one.timestamp <= at_ms),
        batches=tuple(one for one in case.sample.batches if one.max_timestamp <= at_ms),
    )
    return replace(case, now_ms=at_ms, journal=case.journal.until(at_ms), sample=sample)
