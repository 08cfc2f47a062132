"""`ottla journal`: what the nodes saw, a line for each event."""

import json
import time
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.explain.running import with_access
from ottla.cli.failure import Failure
from ottla.cli.output import json_option, say
from ottla.cli.profiles import cluster_options
from ottla.cli.times import parse_time_ms

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.evidence.journal import JournalEvent, JournalView


@click.command()
@cluster_options
@json_option
@click.option(
    "--since", default="1h", show_default=True, metavar="TIME", help="From then on: 10m, or a time."
)
@click.option("--until", metavar="TIME", help="Until then.")
@click.option("--kind", "kinds", multiple=True, help="Only events of this kind. Can be repeated.")
@click.option("--client", help="Only what is about this client id.")
@click.option("--group", help="Only what is about this group.")
@click.option("--topic", help="Only what is about this topic.")
def journal(
    properties: dict[str, str],
    as_json: bool,
    since: str,
    until: str | None,
    kinds: tuple[str, ...],
    client: str | None,
    group: str | None,
    topic: str | None,
) -> None:
    """Show what the nodes have written down: who read what, who left, what was refused, who leads.

    `ottla why` reads the same lines. Apache Kafka keeps no journal.
    """
    since_ms = parse_time_ms(since, "--since")
    until_ms = int(time.time() * 1000) if until is None else parse_time_ms(until, "--until")

    async def work(access: "Access") -> "JournalView":
        from ottla.explain.evidence.journal import read_journal

        return await read_journal(access, since_ms)

    view = with_access(properties, work)
    if not view.exists:
        raise Failure(
            "the cluster keeps no journal, or you may not read it; Ottla writes one unless "
            "ottla.journal.enable is false"
        )
    shown = [
        event
        for event in view.events
        if event.at_ms <= until_ms
        and (not kinds or event.kind in kinds)
        and (client is None or is_about_client(event, client))
        and (group is None or event.facts.get("group") == group)
        and (topic is None or topic in topics_of(event))
    ]
    for event in shown:
        say(json.dumps(_as_json(event)) if as_json else text_of(event))
    if not shown and not as_json:
        say("the journal has no such lines; --since goes back further", err=True)


def is_about_client(event: "JournalEvent", client: str) -> bool:
    """Say whether an event is about a client id."""
    return event.facts.get("client") == client or event.subject.startswith(f"client/{client}@")


def topics_of(event: "JournalEvent") -> set[str]:
    """Return the topics that an event names."""
    facts = event.facts
    at = facts.get("at", facts.get("ends", ()))
    places = [at] if isinstance(at, str) else list(at)
    named = {place.rpartition("/")[0] for place in places}
    named.update(facts.get("topics", ()))
    return named | ({facts["topic"]} if "topic" in facts else set())


def text_of(event: "JournalEvent") -> str:
    """Return an event as a line for people."""
    from ottla.explain.answer import time_text
    from ottla.model.shown import one_line

    facts = ", ".join(f"{name} {_value_text(value)}" for name, value in event.facts.items() if name != "n")
    node = f"node {event.facts['n']}  " if "n" in event.facts else ""
    subject = event.subject or "-"
    return one_line(f"{time_text(event.at_ms)}  {node}{event.kind}  {subject}  {facts}".rstrip())


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}@{offset}" for name, offset in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return "-" if value is None else str(value)


def _as_json(event: "JournalEvent") -> dict[str, Any]:
    return {
        "at_ms": event.at_ms,
        "kind": event.kind,
        "subject": event.subject,
        "place": event.place,
        "facts": event.facts,
    }
