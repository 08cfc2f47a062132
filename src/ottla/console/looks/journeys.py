"""The story of a record as a picture for a page: lanes for actors, time from top to bottom.

Colours and fonts are those of the page's styles, so it is right in the dark, too.
"""

from typing import Final
from xml.sax.saxutils import escape

from ottla.explain.answer import duration_text, time_text
from ottla.explain.steps import Step
from ottla.explain.trace import Story
from ottla.model.shown import one_line

_LANE: Final = 230
_TIME: Final = 200
_ROW: Final = 72
_TOP: Final = 64
_MARGIN: Final = 16
_CHARACTERS: Final = 32
_LINES: Final = 3
_WAIT_SHOWN_MS: Final = 1


def draw_journey(story: Story) -> str:
    """Return the picture as SVG, without styles of its own."""
    steps = [step for step in story.steps if step.at_ms is not None]
    lanes = list(dict.fromkeys(step.actor for step in steps)) or ["log"]
    if "log" in lanes:
        lanes.remove("log")
        lanes.insert(1 if steps and steps[0].actor != "log" else 0, "log")
    width, height = _TIME + _LANE * len(lanes) + _LANE // 3, _TOP + _ROW * max(len(steps), 1)
    title = _text(f"The journey of {story.record.place}")
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg class="journey" xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">'
    ]
    for lane in lanes:
        x = _x(lanes, lane)
        parts.append(f'<line class="lane" x1="{x}" y1="40" x2="{x}" y2="{height}"/>')
        parts.append(f'<text class="actor" x="{x}" y="24" text-anchor="middle">{_text(lane[:30])}</text>')
    before: Step | None = None
    for number, step in enumerate(steps):
        parts += _draw_step(lanes, step, before, _TOP + _ROW * number)
        before = step
    return "".join((*parts, "</svg>"))


def _x(lanes: list[str], lane: str) -> int:
    return _TIME + lanes.index(lane) * _LANE + _LANE // 3


def _draw_step(lanes: list[str], step: Step, before: Step | None, y: int) -> list[str]:
    x = _x(lanes, step.actor)
    parts = [f'<text class="at" x="{_MARGIN}" y="{y + 4}">{time_text(step.at_ms or 0)}</text>']
    if before is not None:
        wait_ms = (step.at_ms or 0) - (before.at_ms or 0)
        if wait_ms >= _WAIT_SHOWN_MS:
            wait = _text(duration_text(wait_ms))
            parts.append(f'<text class="wait" x="{_MARGIN}" y="{y - _ROW // 2 + 4}">+ {wait}</text>')
    source = _source(lanes, step)
    if source is not None:
        parts.append(f'<line class="way" x1="{_x(lanes, source)}" y1="{y}" x2="{x}" y2="{y}"/>')
    kind = "again" if step.kind == "again" else "step"
    parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="5"/>')
    parts.append(f'<text class="kind" x="{x + 12}" y="{y + 4}">{_text(step.kind)}</text>')
    parts += [
        f'<text class="what" x="{x + 12}" y="{y + 19 + 14 * number}">{_text(line)}</text>'
        for number, line in enumerate(_lines(step.text))
    ]
    return parts


def _source(lanes: list[str], step: Step) -> str | None:
    if step.actor == "log":
        return lanes[0] if step.kind == "appended" and lanes[0] != "log" else None
    return "log" if step.kind in ("delivered", "again", "pipeline") and "log" in lanes else None


def _lines(text: str) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > _CHARACTERS and line:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    lines.append(line)
    return lines if len(lines) <= _LINES else [*lines[: _LINES - 1], f"{lines[_LINES - 1]} …"]


def _text(text: str) -> str:
    return escape(one_line(text), {'"': "&quot;"})
