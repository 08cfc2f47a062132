"""What the journal costs a node, in about a hundred seconds.

    python -m benchmarks.journal

First the same steady load goes to two nodes at the same time, one with the journal and one without. What the
one takes more of CPU time in a second is what the journal costs: it is written each second, however much is
produced. As a share of a core that is the answer for a node that is busy all the time. Then both take turns
at full speed, and their CPU time for a million records is compared. That ratio has the larger spread.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer

from ottla.testing.node import ProcessNode

WINDOWS = 9
WINDOW_S = 5.0
RATE = 500
ROUNDS = 4
FULL_S = 6.0
PARTITIONS = 8


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has taken so far. The scheduler counts it in nanoseconds."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in threads) / 1e9


class Load:
    """A producer of small batches, and a group that reads and commits."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "batch.num.messages": 10})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "latest",
                "auto.commit.interval.ms": 500,
            }
        )
        self._consumer.subscribe(["load"])
        self.written = 0

    def run_for(self, seconds: float, per_second: float | None = None) -> None:
        """Write and read for a while, as fast as it goes or at a rate."""
        started, first = time.monotonic(), self.written
        while (passed := time.monotonic() - started) < seconds:
            due = 500 if per_second is None else first + int(passed * per_second) - self.written
            for _ in range(due):
                try:
                    self._producer.produce("load", b"x" * 100, partition=self.written % PARTITIONS)
                    self.written += 1
                except BufferError:
                    self._producer.poll(0.01)
            self._producer.poll(0)
            self._consumer.consume(5000, 0 if per_second is None else 0.01)
        self._producer.flush()

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def measure_steadily(nodes: Mapping[str, ProcessNode], windows: int) -> list[float]:
    """Give both nodes the same load. Return the CPU seconds in a second that the journal takes."""
    loads = {name: Load(node.bootstrap, "steady") for name, node in nodes.items()}
    costs = []
    for number in range(windows + 1):
        before = {name: cpu_s(node.pid) for name, node in nodes.items()}
        threads = [threading.Thread(target=load.run_for, args=(WINDOW_S, RATE)) for load in loads.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = {name: (cpu_s(node.pid) - before[name]) / WINDOW_S for name, node in nodes.items()}
        if number:
            # The first window warms both up.
            costs.append(took["with"] - took["without"])
            print(
                f"steady: {1000 * took['with']:.1f} ms a second with, {1000 * took['without']:.1f} without",
                flush=True,
            )
    for load in loads.values():
        load.close()
    return costs


def measure_at_full_speed(nodes: Mapping[str, ProcessNode], rounds: int) -> list[float]:
    """Let the nodes take turns. Return the ratios of their CPU time for a record."""
    loads = {name: Load(node.bootstrap, "full") for name, node in nodes.items()}
    ratios = []
    for number in range(rounds + 1):
        took = {}
        for name, node in nodes.items():
            before, written = cpu_s(node.pid), loads[name].written
            loads[name].run_for(FULL_S)
            took[name] = (cpu_s(node.pid) - before) / (loads[name].written - written) * 1e6
        if number:
            ratios.append(took["with"] / took["without"])
            print(
                f"full speed: {took['with']:.2f} s for a million with, {took['without']:.2f} without",
                flush=True,
            )
    for load in loads.values():
        load.close()
    return ratios


def main() -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=WINDOWS)
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
        costs = measure_steadily(nodes, given.windows)
        ratios = measure_at_full_speed(nodes, given.rounds)
        for node in nodes.values():
            node.stop()
    middle, low, high = statistics.median(costs), min(costs), max(costs)
    print(f"the journal takes {middle:.2%} of a core ({low:.2%} to {high:.2%})")
    middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
    print(f"CPU for a record with the journal, by CPU without it: {middle:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
