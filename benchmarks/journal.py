"""What the journal costs a node: CPU time for the same load, with the journal and without.

    python -m benchmarks.journal

Two nodes take turns: a producer of small batches and a group that reads and commits. The CPU time is that of
the node's process, by /proc. A single ratio says little, so it is shown with its spread.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from ottla.testing.node import ProcessNode

RECORDS = 200_000
ROUNDS = 7


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(bootstrap: str, records: int, name: str) -> None:
    """Write and read records, and commit them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "batch.num.messages": 100})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe(["load"])
    read = 0
    for number in range(records):
        while True:
            try:
                producer.produce("load", b"x" * 100, partition=number % 8)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
            read += len(consumer.consume(2000, 0))
    producer.flush()
    deadline = time.monotonic() + 60
    while read < records and time.monotonic() < deadline:
        read += len(consumer.consume(5000, 0.5))
    consumer.close()


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        nodes = {
            name: ProcessNode(
                Path(directory) / name, {"ottla.journal.enable": "true" if name == "with" else "false"}
            )
            for name in ("with", "without")
        }
        for node in nodes.values():
            node.start()
            node.create_topic("load", 8)
        ratios = []
        for number in range(given.rounds + 1):
            took = {}
            for name, node in nodes.items():
                assert node.pid is not None
                before = cpu_s(node.pid)
                load(node.bootstrap, given.records, f"group-{number}")
                took[name] = cpu_s(node.pid) - before
            if number:
                # The first round warms both up.
                ratios.append(took["with"] / took["without"])
                print(f"with {took['with']:.2f} s, without {took['without']:.2f} s: {ratios[-1]:.3f}")
        for node in nodes.values():
            node.stop()
    middle, spread = statistics.median(ratios), statistics.pstdev(ratios)
    print(f"CPU with the journal, by CPU without it: {middle:.3f} (spread {spread:.3f})")


if __name__ == "__main__":
    main()
