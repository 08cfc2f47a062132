"""Draws docs/internals/architecture.svg from the import contracts in pyproject.toml, for `make reference`.

A row is a layer of the contract "arrows point down", and a box is a package. Layers may name packages that do
not exist yet: those are not drawn. What a package may do comes from the other contracts.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).parents[2]
PICTURE: Final = ROOT / "docs" / "internals" / "architecture.svg"

LAYERS: Final = "arrows point down"
ROOMS: Final = "the rooms of the broker"
PURE: Final = "below runtime nothing touches the world"
ASKS_ITS_WORLD: Final = "the broker asks its world, so that it runs in a simulation"
NO_SERVER: Final = "the client never imports the server"
NO_SPARK: Final = "only pipelines know Spark"

_WIDTH: Final = 760
_MARGIN: Final = 20
_AXIS: Final = 36
_BOX_HEIGHT: Final = 38
_GAP: Final = 10
_LEGEND_HEIGHT: Final = 74
_ROOM_HEIGHT: Final = 24
_ROOM_GAP: Final = 6
_TITLE_HEIGHT: Final = 30
_STYLE: Final = """\
  <style>
    text { font-family: sans-serif; font-size: 12px; fill: #333; text-anchor: middle; }
    .name { font-family: monospace; font-size: 15px; font-weight: bold; }
    .legend { text-anchor: start; }
    .title { font-weight: bold; text-anchor: start; }
    .room { font-family: monospace; font-size: 13px; }
    .pure { fill: #dcefdc; stroke: #3c7a3c; }
    .asks { fill: #dde8f7; stroke: #3b64a0; }
    .edge { fill: #f6ead6; stroke: #a0742a; }
  </style>
"""
_MEANINGS: Final = {
    "pure": "pure: no clock, files, sockets, threads or randomness of its own",
    "asks": "uses the world only through protocols, so it also runs in a simulation",
    "edge": "works with the real world",
}


class Package(NamedTuple):
    """A box of the picture."""

    name: str
    kind: str
    note: str = ""


def draw(project: Mapping[str, Any], existing: Collection[str]) -> str:
    """Return the picture for the content of a pyproject.toml and the packages that exist."""
    rows, rooms = list(_rows(project, existing)), _rooms(project)
    height = 2 * _MARGIN + len(rows) * (_BOX_HEIGHT + _GAP) + _LEGEND_HEIGHT
    height += _TITLE_HEIGHT + len(rooms) * (_ROOM_HEIGHT + _ROOM_GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">\n',
        "  <title>The packages of Ottla: each imports only packages in the rows below it</title>\n",
        _STYLE,
        f'  <rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n',
        *_draw_axis(_MARGIN + len(rows) * (_BOX_HEIGHT + _GAP) - _GAP),
    ]
    top = _MARGIN
    for row in rows:
        lines += _draw_row(row, top)
        top += _BOX_HEIGHT + _GAP
    lines += _draw_legend(top + 8)
    lines += _draw_rooms(rooms, top + _LEGEND_HEIGHT)
    return "".join((*lines, "</svg>\n"))


def draw_project() -> str:
    """Return the picture of this project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    existing = {path.parent.name for path in (ROOT / "src" / "ottla").glob("*/__init__.py")}
    return draw(project, existing)


def _rows(project: Mapping[str, Any], existing: Collection[str]) -> Iterator[list[Package]]:
    contracts = {contract["name"]: contract for contract in project["tool"]["importlinter"]["contracts"]}
    pure, asks, no_server, no_spark = (
        _packages(contracts[name]) for name in (PURE, ASKS_ITS_WORLD, NO_SERVER, NO_SPARK)
    )
    drawn: set[str] = set()
    for layer in contracts[LAYERS]["layers"]:
        row = []
        for name in re.findall(r"\w+", layer):
            if name not in existing:
                continue
            kind = "pure" if name in pure else "asks" if name in asks else "edge"
            note = "imports no server" if name in no_server else ""
            row.append(Package(name, kind, note if name in no_spark else "may import Spark"))
        drawn.update(package.name for package in row)
        if row:
            yield row
    missing = set(existing) - drawn
    if missing:
        raise ValueError(f"the contract {LAYERS!r} has no layer for {sorted(missing)}: add them to it")


def _rooms(project: Mapping[str, Any]) -> list[list[str]]:
    """Return the layers within the broker: rooms, and the few modules that lie beside them."""
    (contract,) = (one for one in project["tool"]["importlinter"]["contracts"] if one["name"] == ROOMS)
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def _packages(contract: Mapping[str, Any]) -> set[str]:
    """Return the packages that a contract is about."""
    return {module.removeprefix("ottla.") for module in contract["source_modules"]}


def _draw_axis(bottom: int) -> Iterator[str]:
    middle = (_MARGIN + bottom) // 2
    yield f'  <path d="M {_MARGIN} {_MARGIN} V {bottom} m -5 -9 l 5 9 l 5 -9" fill="none" stroke="#333"/>\n'
    yield f'  <text transform="translate({_MARGIN + 16} {middle}) rotate(90)">imports point down</text>\n'


def _draw_row(row: list[Package], top: int) -> Iterator[str]:
    left = _MARGIN + _AXIS
    width = (_WIDTH - _MARGIN - left - (len(row) - 1) * _GAP) // len(row)
    for package in row:
        middle = left + width // 2
        yield (
            f'  <rect class="{package.kind}" x="{left}" y="{top}" width="{width}" height="{_BOX_HEIGHT}" '
            'rx="6"/>\n'
        )
        name_at = top + (17 if package.note else 24)
        yield f'  <text class="name" x="{middle}" y="{name_at}">{escape(package.name)}</text>\n'
        if package.note:
            yield f'  <text x="{middle}" y="{top + 32}">{escape(package.note)}</text>\n'
        left += width + _GAP


def _draw_rooms(rooms: list[list[str]], top: int) -> Iterator[str]:
    first = _MARGIN + _AXIS
    yield f'  <text class="title" x="{first}" y="{top + 18}">The rooms of broker, in layers, too</text>\n'
    top += _TITLE_HEIGHT
    for row in rooms:
        left, width = first, (_WIDTH - _MARGIN - first - (len(row) - 1) * _GAP) // len(row)
        for room in row:
            middle = left + width // 2
            yield (
                f'  <rect class="asks" x="{left}" y="{top}" width="{width}" height="{_ROOM_HEIGHT}" '
                'rx="4"/>\n'
                f'  <text class="room" x="{middle}" y="{top + 17}">{escape(room)}</text>\n'
            )
            left += width + _GAP
        top += _ROOM_HEIGHT + _ROOM_GAP


def _draw_legend(top: int) -> Iterator[str]:
    left = _MARGIN + _AXIS
    for kind, meaning in _MEANINGS.items():
        yield f'  <rect class="{kind}" x="{left}" y="{top}" width="14" height="14" rx="3"/>\n'
        yield f'  <text class="legend" x="{left + 22}" y="{top + 12}">{escape(meaning)}</text>\n'
        top += 21


if __name__ == "__main__":
    PICTURE.write_text(draw_project())
