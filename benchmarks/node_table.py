"""The table of `make bench` as Markdown.

`python -m benchmarks.node_table` gives all rows, for docs/measured.md, and `python -m benchmarks.node_table
readme` the five of the README.

It is made from the JSON file alone, so that what is published is what was measured.
"""

import json
import sys
from pathlib import Path
from typing import Any

FIVE = {
    "throughput": "librdkafka produces 1 KB, acks=1",
    "latency": "produce to consume, p99",
    "start": "start to first record",
    "memory": "memory after the start",
    "CPU": "16 KB produce",
}
"""What people ask for, and the row that answers it."""

RESULTS = Path("target/bench-node.json")
_HEAD = """\
| what | Ottla | Apache Kafka | times better (spread) | goal | noise |
|---|---|---|---|---|---|"""

_SHORT_HEAD = """\
| what | Ottla | Apache Kafka 4.3.1 | times better (spread) |
|---|---|---|---|"""


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table, and above it when they were measured."""
    times = sorted(row["measured"] for row in rows)
    return "\n".join([f"Measured from {times[0]} to {times[-1]}.", "", _HEAD, *map(_line, rows)])


def readme(rows: list[dict[str, Any]]) -> str:
    """Return the rows of the README."""
    by_name = {row["what"]: row for row in rows}
    return "\n".join([_SHORT_HEAD, *(f"| {asked}: {_start(by_name[what])}" for asked, what in FIVE.items())])


def _line(row: dict[str, Any]) -> str:
    goal = f"{row['goal']:g}" if row["goal"] else ""
    return f"| {_start(row)} {goal} | {row['noise']:.0%} |"


def _start(row: dict[str, Any]) -> str:
    ratio = row["ratio"]
    spread = f"{ratio['middle']:.1f} ({ratio['low']:.1f} to {ratio['high']:.1f})"
    ottla, apache = (f"{_figure(row[side])} {row['unit']}" for side in ("ottla", "apache"))
    return f"{row['what']} | {ottla} | {apache} | {spread} |"


def _figure(value: float) -> str:
    """Three digits are as many as such a measurement can bear."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    print((readme if "readme" in sys.argv[1:] else markdown)(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
