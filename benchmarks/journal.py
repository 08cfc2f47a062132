"""What the journal costs a node: CPU time for the same load, with the journal and without.

    python -m benchmarks.journal

Two nodes take turns: a producer of small batches and a group that reads and commits, for some seconds. The
CPU time is that of the node's process, by /proc, for a million records. A single ratio says little, so it is
shown with its spread.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from ottla.testing.node import ProcessNode

SECONDS = 8.0
ROUNDS = 7
PARTITIONS = 8


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(bootstrap: str, seconds: float, name: str) -> int:
    """Write and read records for a while, and commit them. Return how many were written."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "batch.num.messages": 10})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "auto.offset.reset": "latest",
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe(["load"])
    until = time.monotonic() + seconds
    written = 0
    while time.monotonic() < until:
        for number in range(500):
            try:
                producer.produce("load", b"x" * 100, partition=number % PARTITIONS)
                written += 1
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
        consumer.consume(5000, 0)
    producer.flush()
    consumer.close()
    return written


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=SECONDS)
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
            node.create_topic("load", PARTITIONS)
        ratios = []
        for number in range(given.rounds + 1):
            took = {}
            for name, node in nodes.items():
                before = cpu_s(node.pid)
                written = load(node.bootstrap, given.seconds, f"group-{number}")
                took[name] = (cpu_s(node.pid) - before) / written * 1e6
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
