"""What an answer is: causes with evidence, ranked; what was looked at; what could not be known; what to do.

Four rules. A cause is named only with evidence that a reader can check. One that follows from the evidence,
but is not shown by it, says "probably". What is not known is said, with what would have shown it. "Nothing
wrong found" is said only where everything that could be wrong was looked at, and was seen to be right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final

from ottla.model.shown import one_line


class Strength(IntEnum):
    """How sure a cause is."""

    POSSIBLE = 1
    LIKELY = 2
    PROVED = 3

    def qualify(self, sentence: str) -> str:
        """Return a sentence that says how sure it is."""
        return f"{_WORDS[self]}: {sentence}" if self in _WORDS else sentence


_WORDS: Final = {Strength.LIKELY: "probably", Strength.POSSIBLE: "possibly"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact: what it is, where it comes from, and how to see it."""

    text: str
    source: str
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. `weight` orders causes that are equally sure: the larger explains more."""

    name: str
    strength: Strength
    sentence: str
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...] = ()
    weight: float = 0.0


CAUSE: Final = "cause"
HEALTHY: Final = "healthy"
UNKNOWN: Final = "unknown"

EXIT_CODES: Final = {HEALTHY: 0, CAUSE: 10, UNKNOWN: 11}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question."""

    question: str
    subject: str
    causes: tuple[Cause, ...]
    healthy: str
    """What is said if no cause was found."""
    missing: tuple[str, ...] = ()
    """What could not be known, and what would have shown it."""
    is_unknown: bool = False
    """Whether too little could be seen to call it healthy."""
    journal_ms: tuple[int, int] | None = None
    """Of which time the journal tells that was read, if there is one."""
    looked_at: tuple[str, ...] = ()
    """What the answer is made from."""
    next_steps: tuple[str, ...] = ()
    """What to look at if nothing is proved."""

    @property
    def verdict(self) -> str:
        """Return the answer in a word. What is only possible is no answer."""
        if self.causes and self.causes[0].strength > Strength.POSSIBLE:
            return CAUSE
        return UNKNOWN if self.is_unknown or self.causes else HEALTHY

    @property
    def exit_code(self) -> int:
        """Return the answer for scripts."""
        return EXIT_CODES[self.verdict]

    def as_json(self) -> dict[str, Any]:
        """Return the answer for programs."""
        first = self.causes[0] if self.causes else None
        return {
            "question": self.question,
            "subject": self.subject,
            "verdict": self.verdict,
            "cause": None if first is None else first.name,
            "strength": None if first is None else first.strength.name.lower(),
            "sentence": self.sentence,
            "evidence": [] if first is None else [_evidence_json(item) for item in first.evidence],
            "advice": [] if first is None else list(first.advice),
            "also": [
                {
                    "cause": item.name,
                    "strength": item.strength.name.lower(),
                    "sentence": item.strength.qualify(item.sentence),
                    "evidence": [_evidence_json(one) for one in item.evidence],
                    "advice": list(item.advice),
                }
                for item in self.causes[1:]
            ],
            "looked_at": list(self.looked_at),
            "missing": list(self.missing),
            "next_steps": list(self.next_steps),
            "journal_ms": None if self.journal_ms is None else list(self.journal_ms),
        }

    @property
    def sentence(self) -> str:
        """Return the answer in one sentence."""
        if not self.causes:
            return self.healthy
        return self.causes[0].strength.qualify(self.causes[0].sentence)


def ranked(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Put the surest causes first; among those, the ones that explain most."""
    return tuple(sorted(causes, key=lambda cause: (-cause.strength, -cause.weight)))


def render(answer: Answer) -> str:
    """Return the answer for people."""
    lines = [answer.sentence]
    if answer.causes:
        first = answer.causes[0]
        lines += _evidence_lines(first)
        lines += [f"  do: {text}" for text in first.advice]
        for other in answer.causes[1:]:
            lines += ["", f"also {other.strength.qualify(other.sentence)}", *_evidence_lines(other)]
    if answer.verdict == UNKNOWN:
        lines += [f"  next: {text}" for text in answer.next_steps]
    lines += [f"looked at: {text}" for text in answer.looked_at]
    if answer.journal_ms is not None:
        first_ms, last_ms = answer.journal_ms
        lines.append(f"the journal covers {time_text(first_ms)} to {time_text(last_ms)}")
    lines += [f"not known: {text}" for text in answer.missing]
    # A name with the end of a line in it must not look like a line of this answer.
    return "\n".join(map(one_line, lines))


def _evidence_lines(cause: Cause) -> Sequence[str]:
    return [
        f"  {'' if item.at_ms is None else time_text(item.at_ms) + '  '}{item.text}  [{item.source}]"
        for item in cause.evidence
    ]


def _evidence_json(item: Evidence) -> dict[str, Any]:
    return {"text": item.text, "source": item.source, "at_ms": item.at_ms}


def time_text(at_ms: int) -> str:
    """Return a time for people, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def duration_text(milliseconds: float) -> str:
    """Return a duration for people."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
