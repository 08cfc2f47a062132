"""A node against Apache Kafka 4.3.1, side by side. `make bench` prints the table and writes it as JSON.

Both brokers run all the time and take turns, block by block, on the same work; a ratio is the median of the
ratios of neighbouring blocks. CPU is that of the broker's process, user and kernel. Where acknowledgement
matters the rows use acks=1, which is the same promise in both; acks=all, which in Ottla alone means "on
disk", has rows of its own.

`--rows fetch,latency` measures some groups of rows only, and replaces them in the JSON file.
"""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from benchmarks.node_brokers import both_brokers
from benchmarks.node_clients import java_rows, librdkafka_rows
from benchmarks.node_compare import Brokers, Row
from benchmarks.node_requests import Topics, fetch_rows, latency_rows, produce_rows, warm_up
from benchmarks.node_sizes import size_rows, start_rows
from benchmarks.node_table import RESULTS

_START: Final = "start"
"""Measured first: everything else takes memory."""
_GROUPS: Final[dict[str, Callable[[Brokers, Topics, float], Iterable[Row]]]] = {
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
    # Whoever has waited long enough ends it so. The brokers have to be stopped then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = (_START, *_GROUPS)
    wanted = options.rows.split(",") if options.rows else names
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"no such rows: {', '.join(unknown)}; there are {', '.join(names)}")
    print(f"{'':<42} {'Ottla':>10} {'Kafka':>10} {'':<9} {'times better (spread)':>24}")
    with both_brokers() as brokers:
        if _START in wanted:
            _keep(start_rows(brokers))
        topics = Topics(brokers)
        warm_up(brokers, topics)
        for name, measure in _GROUPS.items():
            if name in wanted:
                _keep(measure(brokers, topics, options.scale))
    print(f"written to {RESULTS}")


def _keep(rows: Iterable[Row]) -> None:
    """Put each row into the file as it comes, in place of one of the same name."""
    RESULTS.parent.mkdir(exist_ok=True)
    for row in rows:
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
        measured = datetime.now(UTC).isoformat(timespec="seconds")
        by_name = {old["what"]: old for old in known} | {row.what: {**row.as_json(), "measured": measured}}
        RESULTS.write_text(json.dumps(list(by_name.values()), indent=1))


if __name__ == "__main__":
    main()
