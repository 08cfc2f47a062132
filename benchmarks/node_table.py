"""The table of `make bench` as Markdown, for the README: `python -m benchmarks.node_table`.

It is made from the JSON file alone, so that what is published is what was measured.
"""

import json
from pathlib import Path
from typing import Any

RESULTS = Path("target/bench-node.json")
_HEAD = """\
| what | Ottla | Apache Kafka | times better (spread) | goal | noise |
|---|---|---|---|---|---|"""


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table, and above it when they were measured."""
    times = sorted(row["measured"] for row in rows)
    return "\n".join([f"Measured from {times[0]} to {times[-1]}.", "", _HEAD, *map(_line, rows)])


def _line(row: dict[str, Any]) -> str:
    ratio = row["ratio"]
    spread = f"{ratio['middle']:.1f} ({ratio['low']:.1f} to {ratio['high']:.1f})"
    ottla, apache = (f"{_figure(row[side])} {row['unit']}" for side in ("ottla", "apache"))
    goal = f"{row['goal']:g}" if row["goal"] else ""
    return f"| {row['what']} | {ottla} | {apache} | {spread} | {goal} | {row['noise']:.0%} |"


def _figure(value: float) -> str:
    """Three digits are as many as such a measurement can bear."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    print(markdown(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
