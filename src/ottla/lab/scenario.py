"""What a scenario is: a trouble with a name, how it is made, and the question that is asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.explain.answer import Answer
from ottla.explain.causes.order import why_order
from ottla.explain.causes.silent import why_silent
from ottla.explain.causes.slow import why_slow, why_topic_slow
from ottla.explain.causes.twice import why_topic_twice, why_twice
from ottla.explain.evidence.cases import gather_group, gather_topic
from ottla.lab.stage import Stage

Play = Callable[[Stage, bool], Answer]
"""Play it, with the fault or without, and return what is answered."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One trouble. `cause` is the name of what should be found."""

    name: str
    question: str
    cause: str
    story: str
    play: Play
    settings: Mapping[str, str] = field(default_factory=dict)
    """What the node needs besides."""


SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(
    question: str, cause: str, story: str, settings: Mapping[str, str] | None = None
) -> Callable[[Play], Play]:
    """Register a scenario under its function's name."""

    def register(play: Play) -> Play:
        name = play.__name__.replace("_", "-")
        SCENARIOS[name] = Scenario(name, question, cause, story, play, settings or {})
        return play

    return register


# The questions, as the commands ask them


def ask_silent(
    stage: Stage, group: str | None = None, client: str | None = None, topic: str | None = None
) -> Answer:
    """Ask why a group gets nothing."""
    case = stage.ask(lambda access: gather_group(access, group or stage.group, 2.0, with_log=True))
    return why_silent(case, client, topic)


def ask_twice(stage: Stage) -> Answer:
    """Ask why a group got records twice."""
    return why_twice(stage.ask(lambda access: gather_group(access, stage.group, 0.0, with_log=True)))


def ask_topic_twice(stage: Stage) -> Answer:
    """Ask why records are in a topic twice."""
    return why_topic_twice(stage.ask(lambda access: gather_topic(access, stage.topic)))


def ask_order(stage: Stage, key: bytes | None = None) -> Answer:
    """Ask why a topic is out of order."""
    return why_order(stage.ask(lambda access: gather_topic(access, stage.topic)), key)


def ask_slow(stage: Stage) -> Answer:
    """Ask why a group falls behind."""
    return why_slow(stage.ask(lambda access: gather_group(access, stage.group, 3.0, with_log=True)))


def ask_topic_slow(stage: Stage) -> Answer:
    """Ask why writing to a topic is slow."""
    return why_topic_slow(stage.ask(lambda access: gather_topic(access, stage.topic)))
