"""Why: the five questions, asked of a group or a topic, now or at a time in the past."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from ottla.explain.access import Access
from ottla.explain.answer import Answer
from ottla.explain.causes.lost import why_lost, why_topic_lost
from ottla.explain.causes.order import why_order
from ottla.explain.causes.silent import why_silent
from ottla.explain.causes.slow import why_slow, why_topic_slow
from ottla.explain.causes.twice import why_topic_twice, why_twice
from ottla.explain.evidence.cases import GroupCase, TopicCase, gather_group, gather_topic
from ottla.explain.evidence.past import group_at, of_the_past, topic_at

GROUP_QUESTIONS: Final[Mapping[str, tuple[str, Callable[[GroupCase], Answer]]]] = {
    "silent": ("Why do its consumers get nothing?", lambda case: why_silent(case, None, None)),
    "slow": ("Why does it fall behind?", why_slow),
    "twice": ("Why were records delivered twice?", why_twice),
    "lost": ("Why are records missing?", why_lost),
}
TOPIC_QUESTIONS: Final[Mapping[str, tuple[str, Callable[[TopicCase], Answer]]]] = {
    "order": ("Why are records out of order?", lambda case: why_order(case, None)),
    "twice": ("Why are records in it twice?", why_topic_twice),
    "lost": ("Why are records missing?", why_topic_lost),
    "slow": ("Why is writing slow?", why_topic_slow),
}
_WATCHED_S: Final = {"silent": 3.0, "slow": 3.0}
_AT_ONCE: Final = asyncio.Semaphore(4)
"""Gathering evidence reads logs. Not everybody at once."""


async def ask_group(access: Access, group: str, question: str, at_ms: int | None) -> Answer:
    """Ask a question of a group. Raises ClientError, and KeyError for one that nobody asks."""
    why = GROUP_QUESTIONS[question][1]
    async with _AT_ONCE:
        if at_ms is None:
            return why(await gather_group(access, group, _WATCHED_S.get(question, 0.0), with_log=True))
        then = group_at(await gather_group(access, group, 0.0, with_log=True), at_ms)
    return of_the_past(why(then), then)


async def ask_topic(access: Access, topic: str, question: str, at_ms: int | None) -> Answer:
    """Ask a question of a topic. Raises ClientError, and KeyError for one that nobody asks."""
    why = TOPIC_QUESTIONS[question][1]
    async with _AT_ONCE:
        case = await gather_topic(access, topic)
    if at_ms is None:
        return why(case)
    then = topic_at(case, at_ms)
    return of_the_past(why(then), then)
