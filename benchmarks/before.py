"""This tree against another commit of it: `make bench WHAT=before BASE=<commit>`, in about three minutes.

A node of each runs at the same time, and they take turns on short blocks of the same work. CPU is that of the
node's process. Of each row both the smallest block and the median count: the smallest is what the work costs
if nobody else uses the machine, so it can be compared on a machine that is not ours alone.

A node may be slower than its twin for as long as it lives, and most often it is the one that started
second: a fetch of 64 KiB has cost a third more. So there are several pairs of new nodes, and each tree is
second in half of them. Ratios are geometric means over the pairs, in which such a handicap cancels out.
`BASE=HEAD` shows what is left of it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from statistics import geometric_mean, median
from time import perf_counter
from typing import NamedTuple

from benchmarks.measure import Noise
from benchmarks.node_brokers import Broker
from benchmarks.node_load import connect, exchange, fetch_frame, produce_frame

from ottla.model.uuid import Uuid
from ottla.testing.ports import free_port

TREE = Path(__file__).parent.parent
PAIRS = 4
_ALL = -1
_STOP_TIMEOUT_S = 60


class Contestant(NamedTuple):
    """A tree, and its node while it runs."""

    name: str
    tree: Path
    data: Path


class Result(NamedTuple):
    """What the blocks of one row took, those of each pair of nodes in a list of their own."""

    what: str
    unit: str
    base: list[list[float]]
    here: list[list[float]]

    def __str__(self) -> str:
        pairs = list(zip(self.base, self.here, strict=True))
        ratios = [median(here) / median(base) for base, here in pairs]
        least = geometric_mean(min(here) / min(base) for base, here in pairs)
        return (
            f"{self.what:<38} {min(map(min, self.base)):>9.2f} {min(map(min, self.here)):>9.2f} "
            f"{self.unit:<8} {least:>6.2f} {geometric_mean(ratios):>7.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})"
        )


Measure = Callable[[Broker, dict[str, Uuid]], float]


def _produce(topic: str, value_bytes: int, connections: int, requests: int, depth: int, acks: int) -> Measure:
    def measure(broker: Broker, topics: dict[str, Uuid]) -> float:
        frame = produce_frame(topics[topic], 0, value_bytes, acks=acks)
        peers = [connect(broker.port) for _ in range(connections)]
        try:
            exchange(peers, [frame] * connections, 3 * connections)
            before = broker.cpu_seconds()
            exchange(peers, [frame] * connections, requests, depth)
            return (broker.cpu_seconds() - before) * 1e6 / requests
        finally:
            for peer in peers:
                peer.close()

    return measure


def _fetch(max_bytes: int, requests: int) -> Measure:
    def measure(broker: Broker, topics: dict[str, Uuid]) -> float:
        frame = fetch_frame(topics["fetched"], 0, 0, max_bytes)
        with connect(broker.port) as peer:
            exchange([peer], [frame], 20, depth=2)
            before = broker.cpu_seconds()
            exchange([peer], [frame], requests, depth=2)
            return (broker.cpu_seconds() - before) * 1e6 / requests

    return measure


ROWS: dict[str, Measure] = {
    "tiny produce, 1 connection": _produce("tiny", 100, 1, 4_000, 1, 1),
    "tiny produce, 20 connections": _produce("tiny", 100, 20, 6_000, 1, 1),
    "tiny produce, pipelined": _produce("tiny", 100, 4, 8_000, 16, 1),
    "tiny produce, 20 connections, acks=all": _produce("tiny", 100, 20, 3_000, 1, _ALL),
    "16 KB produce": _produce("large", 16_000, 4, 2_000, 1, 1),
    "16 KB produce, acks=all": _produce("large", 16_000, 4, 500, 1, _ALL),
    "fetch, 64 KiB at a time": _fetch(1 << 16, 2_500),
    "fetch, 1 MiB at a time": _fetch(1 << 20, 300),
}


@contextmanager
def running(contestant: Contestant) -> Iterator[Broker]:
    """Run the node of a tree with the packages that this process has."""
    port = free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": str(contestant.tree / "src"),
        # As an installed node starts: from byte code.
        "PYTHONPYCACHEPREFIX": str(contestant.data.parent / "byte-code"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "ottla", "up", "--port", str(port), "--data", str(contestant.data)]
    start = perf_counter()
    with subprocess.Popen(
        command,
        cwd=contestant.tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready "), f"the node of {contestant.name} did not start: {line}"
        try:
            yield Broker(contestant.name, port, process.pid, perf_counter() - start)
        finally:
            process.terminate()
            process.wait(_STOP_TIMEOUT_S)


def start_rows(contestants: list[Contestant], rounds: int) -> Iterator[Result]:
    """Start both again and again, with their data."""
    found: dict[str, list[tuple[float, float, float]]] = {one.name: [] for one in contestants}
    for number in range(rounds + 1):
        for contestant in contestants if number % 2 else reversed(contestants):
            with running(contestant) as broker:
                figures = broker.started_s * 1e3, broker.cpu_seconds() * 1e3, broker.resident_bytes() / 1e6
            # The first start compiles and formats.
            if number:
                found[contestant.name].append(figures)
    base, here = (found[one.name] for one in contestants)
    for place, (what, unit) in enumerate((("start", "ms"), ("start", "ms CPU"), ("memory", "MB"))):
        yield Result(what, unit, [[one[place] for one in base]], [[one[place] for one in here]])


def request_rows(contestants: list[Contestant], rounds: int) -> Iterator[Result]:
    """Let both serve the same requests, in turns, with several pairs of new nodes."""
    blocks = max(rounds // PAIRS, 1)
    found: dict[str, dict[str, list[list[float]]]] = {
        what: {one.name: [] for one in contestants} for what in ROWS
    }
    for pair in range(PAIRS):
        new = [one._replace(data=one.data.with_name(f"{one.data.name}-{pair}")) for one in contestants]
        for what, took in _pair_blocks(new if pair % 2 else new[::-1], blocks):
            for name, some in took.items():
                found[what][name].append(some)
        for one in new:
            rmtree(one.data)
    base, here = (one.name for one in contestants)
    for what, by_name in found.items():
        yield Result(what, "us CPU", by_name[base], by_name[here])


def _pair_blocks(pair: list[Contestant], blocks: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Run two new nodes. Give the blocks of each row by the name of the node."""
    with running(pair[0]) as first, running(pair[1]) as second:
        brokers = [first, second]
        topics = {}
        for broker in brokers:
            topics[broker.name] = {name: broker.create_topic(name) for name in ("tiny", "large", "fetched")}
            filling = produce_frame(topics[broker.name]["fetched"], 0, 1_000, records=60)
            with connect(broker.port) as peer:
                exchange([peer], [filling], 2_000, depth=4)
        for what, measure in ROWS.items():
            took: dict[str, list[float]] = {broker.name: [] for broker in brokers}
            for number in range(blocks + 1):
                for broker in brokers if number % 2 else reversed(brokers):
                    figure = measure(broker, topics[broker.name])
                    # The first block warms both up.
                    if number:
                        took[broker.name].append(figure)
            yield what, took


def main() -> None:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    noise = Noise()
    with tempfile.TemporaryDirectory(prefix="ottla-before-") as root:
        tree = Path(root, "tree")
        git = ["git", "-C", str(TREE), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), options.base], check=True, capture_output=True)
        try:
            contestants = [
                Contestant(options.base, tree, Path(root, "base")),
                Contestant("this tree", TREE, Path(root, "here")),
            ]
            print(f"{'':<38} {options.base[:9]:>9} {'here':>9} {'':<8} {'least':>6} {'median':>7} (spread)")
            for rows in (start_rows, request_rows):
                for result in rows(contestants, options.rounds):
                    print(result, flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    print(f"others used {noise.share():.0%} of the machine, the nodes themselves included")


if __name__ == "__main__":
    main()
