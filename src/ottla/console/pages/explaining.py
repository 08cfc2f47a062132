"""Pages that explain: why, the journey of a record, hot keys, guarantees, the journal."""

import re
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from ottla.console.looks.journeys import draw_journey
from ottla.console.looks.letters import READ_MAX, count_reasons
from ottla.console.looks.places import UnreadablePlace, parse_time
from ottla.console.looks.reasons import GROUP_QUESTIONS, TOPIC_QUESTIONS, ask_group, ask_topic
from ottla.console.looks.records import read_newest
from ottla.console.pages.records import now_ms
from ottla.console.serving.call import Call, json_answer
from ottla.explain.audit import audit, weakest
from ottla.explain.evidence.journal import KINDS, JournalEvent, read_journal
from ottla.explain.evidence.logs import partitions_of, sample_log
from ottla.explain.hot import measure_heat
from ottla.explain.trace import Story, find_record, tell_story
from ottla.model.ids import TopicPartition
from ottla.satellite.errors import HttpError

_SAMPLED: Final = 20_000
_EVENTS_SHOWN: Final = 500
_PLACE: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)/(?P<partition>\d{1,9})@(?P<offset>\d{1,18})")


def evidence_links(call: Call, text: str) -> list[tuple[str, str | None]]:
    """Cut a text where it names a record, and say where to see that."""
    parts: list[tuple[str, str | None]] = []
    end = 0
    for found in _PLACE.finditer(text):
        parts.append((text[end : found.start()], None))
        parts.append(
            (found[0], call.url("topics", found["topic"], "records", found["partition"], found["offset"]))
        )
        end = found.end()
    return [*parts, (text[end:], None)]


def _at_ms(call: Call) -> int | None:
    try:
        return parse_time(call.text("at"), now_ms()) if call.text("at") else None
    except UnreadablePlace as error:
        raise HttpError(400, str(error)) from error


async def why_group(call: Call) -> Response:
    """Answer a question about a group: the page at first, and the answer as a part of it."""
    return await _why(call, call.path["group"], "groups", GROUP_QUESTIONS, ask_group)


async def why_topic(call: Call) -> Response:
    """Answer a question about a topic."""
    return await _why(call, call.path["topic"], "topics", TOPIC_QUESTIONS, ask_topic)


async def _why(call: Call, name: str, place: str, questions: Mapping[str, Any], ask: Any) -> Response:
    question = call.path["question"]
    if question not in questions:
        raise HttpError(404, f"nobody asks {question[:40]!r}: there are {', '.join(questions)}")
    at_ms = _at_ms(call)
    shown = {key: sentence for key, (sentence, _) in questions.items()}
    answer = None
    if call.is_part or call.flag("now"):
        answer = await ask(call.visit.access, name, question, at_ms)
    template = "answer.html" if call.is_part else "why.html"
    return call.page(
        template,
        place=place,
        name=name,
        question=question,
        questions=shown,
        answer=answer,
        at=call.text("at"),
        links=lambda text: evidence_links(call, text),
        params=dict(call.query),
    )


async def why_group_row(call: Call) -> Response:
    """Answer as `ottla why QUESTION GROUP --json`."""
    if call.path["question"] not in GROUP_QUESTIONS:
        raise HttpError(404, f"there are {', '.join(GROUP_QUESTIONS)}")
    answer = await ask_group(call.visit.access, call.path["group"], call.path["question"], _at_ms(call))
    return json_answer(answer.as_json())


async def journey(call: Call) -> Response:
    """Show the story of a record as a picture and as a list."""
    story = await _story(call)
    return call.page(
        "journey.html",
        place="topics",
        topic=call.path["topic"],
        record=story.record,
        story=story,
        # The picture is ours: every text in it is escaped where it is drawn.
        picture=Markup(draw_journey(story)),  # noqa: S704
        waits=[wait for wait in story.waits() if wait[1] > 0][:3],
        links=lambda text: evidence_links(call, text),
    )


async def journey_row(call: Call) -> Response:
    """Answer as `ottla trace TOPIC/PARTITION@OFFSET --json`."""
    return json_answer((await _story(call)).as_json())


async def _story(call: Call) -> Story:
    partition, offset = call.path["partition"], call.path["offset"]
    if not partition.isdecimal() or not offset.isdecimal():
        raise HttpError(404, "a record has a number of a partition and an offset")
    where = TopicPartition(call.path["topic"], int(partition))
    access = call.visit.access
    return await tell_story(access, await find_record(access, where, int(offset)), None, None)


async def hot(call: Call) -> Response:
    """Show which keys and partitions carry the load, as bars."""
    name = call.path["topic"]
    access = call.visit.access
    partitions = await partitions_of(access, [name])
    if not partitions:
        await access.admin.topics.describe(name)
    sample = await sample_log(access, partitions, _SAMPLED)
    heat = measure_heat(name, len(partitions), sample.records)
    return call.page("hot.html", place="topics", tab="hot", topic=name, heat=heat, keys_=heat.keys)


async def letters(call: Call) -> Response:
    """Show why records of a topic were set aside, as a histogram."""
    name = call.path["topic"]
    page = await read_newest(call.visit.access.cluster, name, count=READ_MAX)
    records = [row.record for row in page.rows]
    reasons = count_reasons(records)
    return call.page(
        "letters.html",
        place="topics",
        tab="letters",
        topic=name,
        reasons=reasons,
        letters=sum(reason.records for reason in reasons),
        read=len(records),
    )


async def guarantees(call: Call) -> Response:
    """Show which guarantee holds for what a group reads, hop by hop."""
    name = call.path["group"]
    await call.visit.access.admin.groups.describe(name)
    hops = await audit(call.visit.access, name)
    return call.page("guarantees.html", place="groups", group=name, hops=hops, weakest=weakest(hops))


async def journal(call: Call) -> Response:
    """Show what the nodes have written down, the newest first."""
    since = call.text("since") or "1h"
    try:
        since_ms = parse_time(since, now_ms())
    except UnreadablePlace as error:
        raise HttpError(400, str(error)) from error
    view = await read_journal(call.visit.access, since_ms)
    kind, about = call.text("kind"), call.text("about")
    found = [
        event
        for event in view.events
        if kind in ("", event.kind) and (not about or about in event.subject or about in _facts_text(event))
    ]
    shown = found[-_EVENTS_SHOWN:][::-1]
    return call.page(
        "journal.html",
        place="journal",
        exists=view.exists,
        events=[(event, _facts_text(event)) for event in shown],
        found=len(found),
        kinds=sorted(KINDS),
        kind=kind,
        about=about,
        since=since,
        links=lambda text: evidence_links(call, text),
    )


def _facts_text(event: JournalEvent) -> str:
    return ", ".join(f"{name} {_value_text(value)}" for name, value in event.facts.items() if name != "n")


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}@{offset}" for name, offset in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
