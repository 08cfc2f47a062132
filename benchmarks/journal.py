"""What the journal costs a node, in about three minutes.

    python -m benchmarks.journal

First the same steady load goes to two nodes at the same time, one with the journal and one without. What the
one takes more of CPU time in a second is what the journal costs: it is written each second, however much is
produced. As a share of a core that is the answer for a node that is busy all the time.

Then both take turns at full speed, and their CPU time for a million records is compared. That ratio has the
larger spread. A node may be slower than its twin for as long as it lives, by several percent, and so may
the one that has its turn first. So there are several pairs of new nodes, and who is first changes with each
pair and each turn. Of the pairs the mean counts, in which such handicaps cancel out. `--same` compares two
nodes without a journal, to see what is left of them.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer

from ottla.testing.node import ProcessNode

WINDOWS = 3
WINDOW_S = 5.0
RATE = 500
PAIRS = 4
FULL_S = 4.0
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


def measure_steadily(nodes: Mapping[str, ProcessNode], windows: int) -> float:
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
    return statistics.median(costs)


def measure_at_full_speed(nodes: Mapping[str, ProcessNode]) -> float:
    """Let two new nodes take turns: A, B, B, A after one to warm up. Return the ratio of their CPU times."""
    loads = {name: Load(node.bootstrap, "full") for name, node in nodes.items()}
    first, second = nodes
    took = dict.fromkeys(nodes, 0.0)
    written = dict.fromkeys(nodes, 0)
    for number, name in enumerate((first, second, first, second, second, first)):
        before, had = cpu_s(nodes[name].pid), loads[name].written
        loads[name].run_for(FULL_S)
        if number >= len(nodes):
            took[name] += cpu_s(nodes[name].pid) - before
            written[name] += loads[name].written - had
    for load in loads.values():
        load.close()
    million = {name: took[name] / written[name] * 1e6 for name in nodes}
    print(
        f"full speed: {million['with']:.2f} s for a million with, {million['without']:.2f} without; "
        f"{first} was first",
        flush=True,
    )
    return million["with"] / million["without"]


@contextmanager
def running(names: Sequence[str], is_same: bool) -> Iterator[dict[str, ProcessNode]]:
    """Run two new nodes, in this order."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        nodes = {}
        for name in names:
            has_journal = "true" if name == "with" and not is_same else "false"
            settings = {"ottla.journal.enable": has_journal}
            nodes[name] = stack.enter_context(ProcessNode(Path(directory) / name, settings))
            nodes[name].create_topic("load", PARTITIONS)
        yield nodes


def main() -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=WINDOWS)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--same", action="store_true", help="compare two nodes without a journal")
    given = parser.parse_args()
    names = ("with", "without")
    costs, ratios = [], []
    for pair in range(given.pairs):
        with running(names if pair % 2 else names[::-1], given.same) as nodes:
            costs.append(measure_steadily(nodes, given.windows))
            ratios.append(measure_at_full_speed(nodes))
    middle, low, high = statistics.mean(costs), min(costs), max(costs)
    print(f"the journal takes {middle:.2%} of a core ({low:.2%} to {high:.2%})")
    middle, low, high = statistics.geometric_mean(ratios), min(ratios), max(ratios)
    print(f"CPU for a record with the journal, by CPU without it: {middle:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
