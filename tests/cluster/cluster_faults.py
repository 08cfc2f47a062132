"""Breaks a cluster of real processes: kill -9, stop, pause, cut networks, full disks. All from a seed."""

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Final

from tests.cluster.namespaces import Namespaces
from tests.support.mixed_cluster import ClusterNode, MixedCluster, wait_until

SPARE_BYTES: Final = 64 * 1024
"""What is left of a disk that is full."""


class ClusterFaults:
    """Faults from a seed, until told to stop. Afterwards everything works."""

    def __init__(
        self, cluster: MixedCluster, network: Namespaces, seed: int, interval_s: float, fills_disks: bool
    ) -> None:
        self._cluster = cluster
        self._network = network
        self._rng = random.Random(seed)
        self._interval_s = interval_s
        self.counts: Counter[str] = Counter()
        self._kinds: list[Callable[[Event], None]] = [
            self.kill,
            self.kill,
            self.stop,
            self.pause,
            self.cut_off,
            self.cut_link,
            self.pause_then_kill,
        ]
        if fills_disks:
            self._kinds.append(self.fill_disk)

    def __call__(self, over: Event) -> None:
        wait_s = self._interval_s * self._rng.uniform(0.1, 0.3)
        while not over.wait(wait_s):
            kind = self._rng.choice(self._kinds)
            kind(over)
            self.counts[kind.__name__] += 1
            wait_s = self._interval_s * self._rng.uniform(0.5, 1.5)
        self._network.mend_all()
        for node in self._cluster:
            if not node.is_running:
                node.start()
        self._cluster.wait_for_brokers(len(self._cluster.nodes))

    def _last(self, over: Event) -> None:
        over.wait(self._interval_s * self._rng.uniform(0.3, 1.5))

    def _pick(self) -> ClusterNode:
        return self._rng.choice(self._cluster.nodes)

    def kill(self, over: Event) -> None:
        """End a process without a warning."""
        node = self._pick()
        node.kill()
        self._last(over)
        node.start()

    def stop(self, over: Event) -> None:
        """Stop a node in order."""
        node = self._pick()
        node.stop()
        self._last(over)
        node.start()

    def pause(self, over: Event) -> None:
        """Let a process stand still."""
        node = self._pick()
        os.kill(node.pid, signal.SIGSTOP)
        self._last(over)
        os.kill(node.pid, signal.SIGCONT)

    def cut_off(self, over: Event) -> None:
        """Cut a node off from the others, in both directions or in one. Clients still reach it."""
        one = self._pick().number
        ways = self._rng.choice(("both", "both", "in", "out"))
        for other in self._cluster:
            if other.number != one:
                self._cut(one, other.number, ways)
        self._last(over)
        self._network.mend_all()

    def cut_link(self, over: Event) -> None:
        """Cut the link between two nodes."""
        a, b = self._rng.sample(self._cluster.nodes, 2)
        self._cut(a.number, b.number, "both")
        self._last(over)
        self._network.mend_all()

    def pause_then_kill(self, over: Event) -> None:
        """Pause one node, let writes build up, kill another, and wake the first while the third pauses."""
        slept, victim, other = self._rng.sample(self._cluster.nodes, 3)
        os.kill(slept.pid, signal.SIGSTOP)
        self._last(over)
        victim.kill()
        os.kill(other.pid, signal.SIGSTOP)
        os.kill(slept.pid, signal.SIGCONT)
        victim.start()
        self._last(over)
        os.kill(other.pid, signal.SIGCONT)

    def fill_disk(self, over: Event) -> None:
        """Leave no room on the disk of a node, and start it again when there is."""
        node = self._pick()
        filler = node.data_directory / "filler"
        free = shutil.disk_usage(node.data_directory).free
        _fill(filler, max(free - SPARE_BYTES, 0))
        self._last(over)
        node.kill()
        filler.unlink()
        node.start()

    def _cut(self, a: int, b: int, ways: str) -> None:
        if ways != "in":
            self._network.cut(a, b)
        if ways != "out":
            self._network.cut(b, a)


def _fill(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(size_bytes, 1))


def all_replicas_in_sync(cluster: MixedCluster, topics: list[str]) -> None:
    """Wait until every replica of every topic is in sync."""
    for topic in topics:
        wait_until(
            lambda topic=topic: all(  # type: ignore[misc]
                len(one) == len(cluster.nodes) for one in cluster.in_sync(topic).values()
            ),
            f"all replicas of {topic} are in sync",
        )
