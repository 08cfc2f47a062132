"""Breaks a cluster of real processes: kills, pauses, cut networks, full disks, power cuts. From a seed.

And changes it, as operators do: logs that move between directories, configs of all brokers and of topics.
"""

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import starmap
from pathlib import Path
from threading import Event
from typing import Final

from tests.cluster.disks import NodeDisk
from tests.cluster.namespaces import Namespaces
from tests.support.mixed_cluster import ClusterNode, MixedCluster, wait_until
from tests.support.plain_client import PlainClient

from ottla.wire.config_kinds import ResourceType
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest

SPARE_BYTES: Final = 64 * 1024
"""What is left of a disk that is full."""
AT_ONCE: Final = 0.25
"""How often the next period does not wait until all nodes are back."""
RECOVERY_S_MAX: Final = 20.0
RECOVERY_LOOK_S: Final = 0.2
ANSWER_S_MAX: Final = 5.0
"""How long an operator waits for a node, which may be away."""
MOVED: Final = 0.4
"""How many of the logs of a node move at once."""
QUIET: Final = 0.25
"""How many periods are without a fault."""
POWER_CUTS: Final = ("cut-power", "cut-power-of-all", "pause-then-cut")
KINDS: Final = (
    "kill", "stop", "pause", "cut-off", "cut-link", "pause-then-kill", "fill-disk", *POWER_CUTS,
)  # fmt: skip
CHANGES: Final = ("move-logs", "change-configs")
"""What operators do to nodes with several log directories, whose files do not say all that holds."""
MEBIBYTE: Final = 1 << 20
CONFIGS: Final = (
    (ResourceType.BROKER, "", "min.insync.replicas", ("1", "2")),
    (ResourceType.BROKER, "", "log.segment.bytes", (str(MEBIBYTE), str(16 * MEBIBYTE))),
    (ResourceType.BROKER, "", "log.roll.ms", ("2000", "604800000")),
    (ResourceType.TOPIC, "any", "segment.bytes", (str(MEBIBYTE), None)),
    (ResourceType.TOPIC, "any", "retention.ms", ("-1", None)),
    (ResourceType.TOPIC, "any", "min.insync.replicas", ("1", "2", None)),
)
"""What is changed to what; None takes a config away. Nothing of it lets records go."""
SET, DELETE = 0, 1


class ClusterFaults:
    """Faults from a seed, until told to stop. Afterwards everything works."""

    def __init__(
        self,
        cluster: MixedCluster,
        network: Namespaces,
        seed: int,
        interval_s: float,
        kinds: Sequence[str] = KINDS,
        disks: Mapping[int, NodeDisk] | None = None,
        note: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`disks` are those of the nodes, by number. Without them there are no power cuts.

        `note` is given a line about each fault when it begins and when it is over.
        """
        self._cluster = cluster
        self._network = network
        self._rng = random.Random(seed)
        self._interval_s = interval_s
        self._disks = disks or {}
        self._note = note
        self._is_abandoned = Event()
        self.counts: Counter[str] = Counter()
        self.lost_bytes = 0
        """How much of logs was lost in power cuts."""
        known: dict[str, Callable[[Event], None]] = {
            "kill": self.kill,
            "stop": self.stop,
            "pause": self.pause,
            "cut-off": self.cut_off,
            "cut-link": self.cut_link,
            "pause-then-kill": self.pause_then_kill,
            "fill-disk": self.fill_disk,
            "cut-power": self.cut_power,
            "cut-power-of-all": self.cut_power_of_all,
            "pause-then-cut": self.pause_then_cut,
            "move-logs": self.move_logs,
            "change-configs": self.change_configs,
        }
        self._kinds = {name: known[name] for name in kinds if self._disks or name not in POWER_CUTS}

    def __call__(self, over: Event) -> None:
        wait_s = self._interval_s * self._rng.uniform(0.1, 0.3)
        while self._kinds and not over.wait(wait_s):
            if self._rng.random() >= QUIET or not self.counts:
                name = self._rng.choice(list(self._kinds))
                self._note(f"{name} begins")
                self._kinds[name](over)
                self._note(f"{name} is over")
                self.counts[name] += 1
                if self._rng.random() >= AT_ONCE:
                    self._recover(over)
            wait_s = self._interval_s * self._rng.uniform(0.5, 1.5)
        if not self._is_abandoned.is_set():
            self._network.mend_all()
            for node in self._cluster:
                if not node.is_running:
                    node.start()
            self._cluster.wait_for_brokers(len(self._cluster.nodes))

    def _recover(self, over: Event) -> None:
        """Wait until all nodes serve, so that clients get on even where nodes take long to start."""
        deadline = time.monotonic() + RECOVERY_S_MAX
        while time.monotonic() < deadline and not over.wait(RECOVERY_LOOK_S):
            for node in self._cluster:
                assert not node.has_failed, f"node {node.number} has ended by itself"
            if self._cluster.serving() == {node.number for node in self._cluster}:
                break

    def abandon(self) -> None:
        """Mend nothing at the end: the campaign was interrupted."""
        self._is_abandoned.set()

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

    def cut_power(self, over: Event) -> None:
        """Cut the power of one machine."""
        node = self._pick()
        self._lose_power([node])
        self._last(over)
        self._restore_power([node])

    def cut_power_of_all(self, over: Event) -> None:
        """Cut the power of all machines at once. They come back in any order."""
        nodes = self._rng.sample(self._cluster.nodes, len(self._cluster.nodes))
        self._lose_power(nodes)
        late = nodes.pop() if self._rng.random() < 0.3 else None
        self._restore_power(nodes)
        if late is not None:
            self._last(over)
            self._restore_power([late])

    def pause_then_cut(self, over: Event) -> None:
        """Pause a node, let writes build up, cut the power of another, and wake the first. The third pauses.

        So the one that missed writes and the one that lost what it had not synced are a majority.
        """
        slept, victim, other = self._rng.sample(self._cluster.nodes, 3)
        os.kill(slept.pid, signal.SIGSTOP)
        self._last(over)
        self._lose_power([victim])
        os.kill(other.pid, signal.SIGSTOP)
        os.kill(slept.pid, signal.SIGCONT)
        self._restore_power([victim])
        self._last(over)
        os.kill(other.pid, signal.SIGCONT)

    def move_logs(self, over: Event) -> None:
        """Move some of the logs of a node to another one of its directories."""
        address = self._cluster.address(self._pick().number)
        with suppress(OSError), PlainClient(address, timeout_s=ANSWER_S_MAX) as client:
            found = client.ask(DescribeLogDirsRequest(topics=None), 2).results
            targets: dict[str, dict[str, list[int]]] = {one.log_dir: {} for one in found}
            for place in found:
                for topic in place.topics:
                    for partition in topic.partitions:
                        if self._rng.random() < MOVED and not partition.is_future_key:
                            path = self._rng.choice([path for path in targets if path != place.log_dir])
                            targets[path].setdefault(topic.name, []).append(partition.partition_index)
            client.ask(AlterReplicaLogDirsRequest(dirs=tuple(starmap(_directory, targets.items()))), 2)
        self._last(over)

    def change_configs(self, over: Event) -> None:
        """Change one config, of all brokers or of a topic. Who is away learns of it when it is back."""
        kind, name, config, values = self._rng.choice(CONFIGS)
        address = self._cluster.address(self._pick().number)
        with suppress(OSError), PlainClient(address, timeout_s=ANSWER_S_MAX) as client:
            if kind is ResourceType.TOPIC:
                topics = client.ask(MetadataRequest(topics=None), 9).topics
                name = self._rng.choice(sorted(one.name for one in topics if not one.is_internal) or [""])
            change = change_of(kind, name, config, self._rng.choice(values))
            client.ask(change, 1)
        self._last(over)

    def _lose_power(self, nodes: Sequence[ClusterNode]) -> None:
        for node in nodes:
            # Half of the machines are gone without a word to those they talk to.
            if self._rng.random() < 0.5:
                self._network.unplug(node.number)
        for node in nodes:
            os.kill(node.pid, signal.SIGKILL)
        # Before the kernel writes anything back.
        for node in nodes:
            self._disks[node.number].cut_power()
        for node in nodes:
            node.kill()

    def _restore_power(self, nodes: Sequence[ClusterNode]) -> None:
        for node in nodes:
            self._network.plug_in(node.number)
            self.lost_bytes += self._disks[node.number].restore()
            meta = node.data_directory / "meta.properties"
            assert meta.exists(), f"node {node.number} lost its meta.properties in a power cut"
            node.start()

    def _cut(self, a: int, b: int, ways: str) -> None:
        if ways != "in":
            self._network.cut(a, b)
        if ways != "out":
            self._network.cut(b, a)


def change_of(
    kind: ResourceType, name: str, config: str, value: str | None
) -> IncrementalAlterConfigsRequest:
    """Return the request that sets a config, or takes it away."""
    operation = DELETE if value is None else SET
    entry = AlterableConfig(name=config, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(entry,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def _directory(path: str, topics: Mapping[str, Sequence[int]]) -> AlterReplicaLogDir:
    named = [AlterReplicaLogDirTopic(name=name, partitions=tuple(some)) for name, some in topics.items()]
    return AlterReplicaLogDir(path=path, topics=tuple(named))


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
