"""A cluster of real nodes for tests, each in a process of its own, on 127.0.0.1.

    with ProcessCluster(tmp_path) as cluster:
        cluster.create_topic("orders", partitions=3)
        cluster[2].kill()
        cluster.produce("orders", "coffee", key="alice")
        ...                       # run what is tested, with cluster.bootstrap as its servers
        cluster[2].start()

Nodes are counted from 1. Each is a `ProcessNode`: it can be killed, paused, stopped and started again while
the others go on. All of them are brokers and controllers; topics have three replicas, of which two have to be
in sync.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from ottla.testing.conversation import NodeSaid
from ottla.testing.node import HOST, ProcessNode, Text
from ottla.testing.ports import free_port
from ottla.wire.error_code import ErrorCode

CLUSTER_ID: Final = "b3R0bGEtdGVzdC1jbHVzdA"
_WAIT_S: Final = 60.0
_ELSEWHERE: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""Answers after which another node leads the partition, or will soon. Nothing was written."""


class ProcessCluster:
    """Several nodes that form a cluster. Entering starts them, leaving ends those that still run.

    They are killed then, since nobody reads their data any more. To stop all of them in order takes seconds:
    the last one waits for others that are gone. `stop` does that.
    """

    def __init__(self, root: Path, nodes: int = 3, settings: Mapping[str, str] | None = None) -> None:
        """Prepare nodes with their data in `root`/node-1 and so on. `settings` hold for all of them."""
        ports = [free_port() for _ in range(2 * nodes)]
        controllers = ports[nodes:]
        voters = ",".join(f"{number}@{HOST}:{port}" for number, port in enumerate(controllers, 1))
        replicas = str(min(nodes, 3))
        in_sync = str(max(min(nodes, 3) - 1, 1))
        self.nodes = [
            ProcessNode(
                root / f"node-{number}",
                {
                    "node.id": str(number),
                    "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
                    "controller.listener.names": "CONTROLLER",
                    "controller.quorum.voters": voters,
                    "default.replication.factor": replicas,
                    "min.insync.replicas": in_sync,
                    "offsets.topic.replication.factor": replicas,
                    "transaction.state.log.replication.factor": replicas,
                    "transaction.state.log.min.isr": in_sync,
                    **(settings or {}),
                },
                port=port,
                options=["--cluster-id", CLUSTER_ID],
            )
            for number, (port, controller) in enumerate(zip(ports, controllers, strict=False), 1)
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for node in self.nodes:
            if node.is_running:
                node.kill()

    def __getitem__(self, number: int) -> ProcessNode:
        """Return a node by its id: 1, 2 or 3."""
        return self.nodes[number - 1]

    def __iter__(self) -> Iterator[ProcessNode]:
        return iter(self.nodes)

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, as clients take them."""
        return ",".join(node.bootstrap for node in self.nodes)

    @property
    def running(self) -> ProcessNode:
        """A node that runs: the first that does."""
        return next(node for node in self.nodes if node.is_running)

    def start(self) -> None:
        """Start all nodes that do not run, and return when they serve."""
        started = [node for node in self.nodes if not node.is_running]
        for node in started:
            node.begin_start()
        for node in started:
            node.finish_start()

    def stop(self) -> None:
        """Stop all nodes that run, all at once: none has to do without the others for long."""
        stopped = [node for node in self.nodes if node.is_running]
        for node in stopped:
            node.begin_stop()
        for node in stopped:
            node.finish_stop()

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic, and return when every node that runs knows it."""
        self.running.create_topic(name, partitions, configs)
        deadline = time.monotonic() + _WAIT_S
        for node in self.nodes:
            while node.is_running and not _knows(node, name):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"node {node.settings['node.id']} does not know {name!r} yet")
                time.sleep(0.02)

    def produce(
        self,
        topic: str,
        *values: Text,
        key: Text = None,
        partition: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> int:
        """Write records into one partition by whichever node leads it, acknowledged.

        Returns the offset of the first. Right after a node was killed, it waits for the new leader.
        """
        deadline = time.monotonic() + _WAIT_S
        pairs = tuple(headers)
        while True:
            for node in self.nodes:
                if not node.is_running:
                    continue
                try:
                    return node.produce(topic, *values, key=key, partition=partition, headers=pairs)
                except NodeSaid as said:
                    if said.error not in _ELSEWHERE or time.monotonic() > deadline:
                        raise
            time.sleep(0.02)


def _knows(node: ProcessNode, topic: str) -> bool:
    try:
        node.conversation.partitions(topic)
    except NodeSaid as said:
        if said.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        raise
    return True
