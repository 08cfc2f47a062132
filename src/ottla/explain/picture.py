"""A story as a sequence diagram: a lane for each actor, time from top to bottom, and the waits between."""

from typing import Final
from xml.sax.saxutils import escape

from ottla.explain.answer import duration_text, time_text
from ottla.explain.steps import Step
from ottla.explain.trace import Story

_LANE: Final = 210
_MARGIN: Final = 30
_TIME: Final = 190
_ROW: Final = 64
_TOP: Final = 90
_LINE_CHARS: Final = 30
_STYLE: Final = """\
  <style>
    text { font-family: sans-serif; font-size: 12px; fill: #333; }
    .name { font-size: 14px; font-weight: bold; text-anchor: middle; }
    .time { font-family: monospace; font-size: 11px; fill: #666; }
    .wait { font-size: 11px; fill: #a0742a; }
    .lane { stroke: #bbb; stroke-dasharray: 4 4; }
    .dot { fill: #3b64a0; }
    .again { fill: #b03030; }
    .arrow { stroke: #3b64a0; stroke-width: 1.5; fill: none; marker-end: url(#tip); }
  </style>
  <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
    <path d="M0 0 L10 5 L0 10 z" fill="#3b64a0"/></marker></defs>
"""


def draw(story: Story) -> str:
    """Return the picture as SVG."""
    steps = [step for step in story.steps if step.at_ms is not None]
    lanes = list(dict.fromkeys(["log" if step.actor == "log" else step.actor for step in steps]))
    if "log" in lanes:
        # The producer is on the left, the log next to it, and the readers follow.
        lanes.remove("log")
        lanes.insert(1 if steps and steps[0].actor != "log" else 0, "log")
    width = 2 * _MARGIN + _TIME + _LANE * max(len(lanes), 1)
    height = _TOP + _ROW * len(steps) + _MARGIN
    title = escape(f"The story of {story.record.place}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n',
        f"  <title>{title}</title>\n",
        _STYLE,
        f'  <rect width="{width}" height="{height}" fill="#fff"/>\n',
        f'  <text x="{_MARGIN}" y="28" font-weight="bold">{title}</text>\n',
    ]
    for lane in lanes:
        x = _x(lanes, lane)
        parts.append(f'  <text class="name" x="{x}" y="62">{escape(lane)}</text>\n')
        parts.append(f'  <line class="lane" x1="{x}" y1="70" x2="{x}" y2="{height - 10}"/>\n')
    before: Step | None = None
    for number, step in enumerate(steps):
        parts += _draw_step(lanes, step, before, _TOP + _ROW * number)
        before = step
    return "".join((*parts, "</svg>\n"))


def _x(lanes: list[str], lane: str) -> int:
    return _MARGIN + _TIME + lanes.index(lane) * _LANE + _LANE // 2


def _draw_step(lanes: list[str], step: Step, before: Step | None, y: int) -> list[str]:
    x = _x(lanes, step.actor)
    kind = "again" if step.kind == "again" else "dot"
    parts = [
        f'  <text class="time" x="{_MARGIN}" y="{y + 4}">{time_text(step.at_ms or 0)}</text>\n',
        f'  <circle class="{kind}" cx="{x}" cy="{y}" r="5"/>\n',
    ]
    if before is not None:
        wait = (step.at_ms or 0) - (before.at_ms or 0)
        parts.append(
            f'  <text class="wait" x="{_MARGIN}" y="{y - _ROW // 2 + 4}">'
            f"+{escape(duration_text(max(wait, 0)))}</text>\n"
        )
    source = _source_lane(lanes, step)
    if source is not None:
        parts.append(f'  <path class="arrow" d="M{_x(lanes, source)} {y} L{x - 7} {y}"/>\n')
    for line, text in enumerate(_lines(f"{step.kind}: {step.text}")):
        parts.append(f'  <text x="{x + 10}" y="{y + 16 + 13 * line}">{escape(text)}</text>\n')
    return parts


def _source_lane(lanes: list[str], step: Step) -> str | None:
    if step.actor == "log":
        return lanes[0] if step.kind == "appended" and lanes[0] != "log" else None
    return "log" if step.kind in ("delivered", "again", "pipeline") and "log" in lanes else None


def _lines(text: str) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > _LINE_CHARS and line:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    lines.append(line)
    return lines[:3] if len(lines) <= 3 else [*lines[:2], lines[2] + " ..."]
