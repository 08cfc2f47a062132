"""A node against Apache Kafka 4.3.1, side by side. `make bench` prints the table and writes it as JSON.

Both brokers run all the time and take turns, block by block, on the same work; a ratio is the median of the
ratios of neighbouring blocks. CPU is that of the broker's process, user and kernel. Where acknowledgement
matters the rows use acks=1, which is the same promise in both; acks=all, which in Ottla alone means "on
disk", has rows of its own.

`--rows fetch,latency` measures some groups of rows only, and replaces them in the JSON file.
"""

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.node_brokers import both_brokers
from benchmarks.node_clients import java_rows, librdkafka_rows
from benchmarks.node_compare import Brokers, Row
from benchmarks.node_requests import Topics, fetch_rows, latency_rows, produce_rows, warm_up
from benchmarks.node_sizes import size_rows, start_rows

_OUT = Path("target/bench-node.json")
_START: Final = "start"
"""Measured first: everything else takes memory."""
_GROUPS: Final[dict[str, Callable[[Brokers, Topics, float], list[Row]]]] = {
    "produce": produce_rows,
    "fetch": fetch_rows,
    "latency": latency_rows,
    "librdkafka": lambda brokers, _topics, scale: librdkafka_rows(brokers, scale),
    "java": lambda brokers, _topics, scale: java_rows(brokers, scale),
    "size": lambda brokers, _topics, _scale: size_rows(brokers, 10_000, 5_000),
}


def main() -> None:
    """Run all rows, or some of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="how much work a block does")
    parser.add_argument("--rows", help="groups of rows, with commas between; all if left out")
    options = parser.parse_args()
    names = (_START, *_GROUPS)
    wanted = options.rows.split(",") if options.rows else names
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"no such rows: {', '.join(unknown)}; there are {', '.join(names)}")
    print(f"{'':<42} {'Ottla':>10} {'Kafka':>10} {'':<9} {'times better (spread)':>24}")
    with both_brokers() as brokers:
        rows = start_rows(brokers) if _START in wanted else []
        topics = Topics(brokers)
        warm_up(brokers, topics)
        for name, measure in _GROUPS.items():
            if name in wanted:
                rows += measure(brokers, topics, options.scale)
    _write(rows)
    print(f"written to {_OUT}")


def _write(rows: list[Row]) -> None:
    """Put rows into the file, in place of those of the same names."""
    known = json.loads(_OUT.read_text()) if _OUT.exists() else []
    by_name = {row["what"]: row for row in known}
    measured = datetime.now(UTC).isoformat(timespec="seconds")
    by_name |= {row.what: {**row.as_json(), "measured": measured} for row in rows}
    _OUT.parent.mkdir(exist_ok=True)
    _OUT.write_text(json.dumps(list(by_name.values()), indent=1))


if __name__ == "__main__":
    main()
