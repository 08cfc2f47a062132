"""How long a cluster is without an active controller when that is killed or stopped: ours and Apache Kafka's.

    python -m benchmarks.quorum [--rounds 20]

Three nodes, broker and controller each, on this machine. A client creates topics at a broker whose node stays
up, one after the other. The time without a controller is that between the end of the active one and the next
topic that is acknowledged. Both kinds take turns, round by round, so that they share what the machine does.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.deciding import new_topic
from tests.support.plain_client import PlainClient
from tests.support.quorum_members import APACHE, OTTLA, QuorumOfProcesses, wait_until

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest

SETTLE_S = 1.0


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Cluster:
    """A cluster, and how often it was without a controller for how long."""

    def __init__(self, root: Path, kind: str) -> None:
        root.mkdir()
        self.kind = kind
        self.quorum = QuorumOfProcesses(root, dict.fromkeys((1, 2, 3), kind))
        self.gaps_s: dict[str, list[float]] = {"killed": [], "stopped": []}
        self.topics = 0
        self.leader = -1

    def start(self) -> None:
        self.quorum.start()
        self.leader = self.quorum.wait_for_leader()
        for member in self.quorum.members.values():
            wait_until(lambda: self.create(member.node_id), "creating a topic")  # noqa: B023

    def create(self, node_id: int) -> bool:
        self.topics += 1
        ask = CreateTopicsRequest(topics=(new_topic(f"t-{self.topics}", 1, 1),))
        with PlainClient(self.quorum.members[node_id].bootstrap, timeout_s=30) as client:
            return bool(client.ask(ask).topics[0].error_code is ErrorCode.NONE)

    def lose_leader(self, how: str) -> None:
        """Take the active controller away, and measure until the next topic is acknowledged."""
        old = self.quorum.members[self.leader]
        other = next(one for one in self.quorum.members if one != self.leader)
        if how == "killed":
            old.kill()
        else:
            old.stop()
        began = time.monotonic()
        wait_until(lambda: self.create(other), "creating a topic")
        self.gaps_s[how].append(time.monotonic() - began)
        self.leader = self.quorum.wait_for_leader(other_than=self.leader)
        old.start()
        wait_until(lambda: self.create(old.node_id), "creating a topic")
        time.sleep(SETTLE_S)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10, help="how often each kind loses its controller")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as root:
        clusters = [Cluster(Path(root) / kind, kind) for kind in (OTTLA, APACHE)]
        with clusters[0].quorum, clusters[1].quorum:
            for cluster in clusters:
                cluster.start()
            for number in range(rounds):
                for cluster in clusters:
                    for how in cluster.gaps_s:
                        cluster.lose_leader(how)
                sys.stderr.write(f"round {number + 1} of {rounds}\n")
    print(f"{'':24}{'p50':>10}{'p99':>10}{'least':>10}{'most':>10}")
    medians: dict[tuple[str, str], float] = {}
    for cluster in clusters:
        for how, gaps_s in cluster.gaps_s.items():
            medians[cluster.kind, how] = statistics.median(gaps_s)
            figures = (statistics.median(gaps_s), percentile(gaps_s, 0.99), min(gaps_s), max(gaps_s))
            print(f"{cluster.kind + ', ' + how:24}" + "".join(f"{1000 * one:8.0f}ms" for one in figures))
    for how in ("killed", "stopped"):
        print(f"{how}: {medians[OTTLA, how] / medians[APACHE, how]:.2f} of Apache Kafka's median")
    return 0


if __name__ == "__main__":
    sys.exit(main())
