"""A cluster of nodes of Ottla and of Apache Kafka, each in a process of its own, on loopback.

    with MixedCluster(tmp_path, "oaa", controllers=(1,)) as cluster:
        cluster.wait_for_brokers(3)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        cluster[3].kill()

Each letter is a node, counted from 1: `o` for Ottla, `a` for Apache Kafka. Internal topics and topics by
default have as many replicas as there are nodes, of which two have to be in sync.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.java.apache_kafka import free_ports
from tests.java.jars import QUICK_START, java_classpath
from tests.support.cluster_checks import find_wrong
from tests.support.ottla_node import ottla_command
from tests.support.plain_client import PlainClient

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

CLUSTER_ID = "b3R0bGEtbWl4ZWQtY2x1cw"
OTTLA, APACHE = "o", "a"
WAIT_S = 180.0
JAVA_OPTIONS = (*QUICK_START, "-Xmx512m")


def wait_until(is_done: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout_s
    while not is_done():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(0.05)


class ClusterNode:
    """One node, of either kind."""

    def __init__(
        self,
        root: Path,
        kind: str,
        number: int,
        properties: Mapping[str, str],
        java_options: Sequence[str],
        prefix: Sequence[str] = (),
        directories: int = 1,
    ) -> None:
        """`prefix` goes before the command that starts it."""
        self.kind = kind
        self._prefix = list(prefix)
        self.number = number
        home = root / f"node-{number}"
        # A log directory has nothing but partitions in it, so several of them lie beside each other.
        names = [f"data-{one}" for one in range(1, directories + 1)]
        self.data_directories = [home] if directories == 1 else [home / name for name in names]
        self.data_directory = self.data_directories[0]
        self.log_path = root / f"node-{number}.log"
        self._settings = root / f"node-{number}.properties"
        self._properties = {**properties, "node.id": str(number)}
        self._properties["log.dirs"] = ",".join(map(str, self.data_directories))
        self._java_options = java_options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the node runs"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def has_failed(self) -> bool:
        """Whether the process has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def set(self, name: str, value: str) -> None:
        """Set a property for the next start."""
        self._properties[name] = value

    def cpu_seconds(self) -> float:
        """Return the CPU time, user and kernel, that the process has used."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def resident_bytes(self) -> int:
        """Return how much memory the process has resident."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def start(self) -> None:
        """Start the process, without waiting until it serves."""
        assert self._process is None, "it runs already"
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in self._properties.items()))
        if not (self.data_directory / "meta.properties").exists():
            self._format()
        if self.kind == OTTLA:
            # A node with a network of its own does not listen on loopback.
            options = ("--insecure",) if self._prefix else ()
            command = ottla_command("up", "--config", str(self._settings), *options)
        else:
            command = [
                "java",
                *self._java_options,
                "-cp",
                java_classpath(),
                "kafka.Kafka",
                str(self._settings),
            ]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._prefix, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def _format(self) -> None:
        if self.kind == OTTLA:
            options = ("storage", "format", "--config", str(self._settings), "--cluster-id", CLUSTER_ID)
            command = ottla_command(*options)
        else:
            tool = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._settings))
            command = ["java", *QUICK_START, "-cp", java_classpath(), *tool]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-2000:]

    def stop(self) -> None:
        """Stop in order."""
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process without a warning."""
        self.end(signal.SIGKILL)

    def end(self, number: signal.Signals) -> None:
        """End the process by a signal, and wait for it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"node {self.number} did not stop") from None

    def log_bytes(self, topic: str, partition: int) -> bytes:
        """Return the bytes of a partition's segments."""
        segments = [
            path for one in self.data_directories for path in (one / f"{topic}-{partition}").glob("*.log")
        ]
        return b"".join(path.read_bytes() for path in sorted(segments, key=attrgetter("name")))


class MixedCluster:
    """All nodes. Entering starts them, leaving ends those that run."""

    def __init__(
        self,
        root: Path,
        kinds: str,
        controllers: Sequence[int] = (1,),
        settings: Mapping[str, str] | None = None,
        java_options: Sequence[str] = JAVA_OPTIONS,
        hosts: Sequence[str] | None = None,
        prefixes: Sequence[Sequence[str]] | None = None,
        *,
        is_checked: bool = True,
        directories: int = 1,
    ) -> None:
        """`hosts` are the addresses of the nodes, and `prefixes` go before the commands that start them.

        Each node has so many log directories.
        `is_checked` says whether leaving checks all logs first, if all nodes run.
        """
        root.mkdir(parents=True, exist_ok=True)
        self._is_checked = is_checked
        count = len(kinds)
        # A node with an address of its own has all ports for itself.
        ports = free_ports(2 * count) if hosts is None else [9092] * count + [9093] * count
        if hosts is None:
            hosts = ["127.0.0.1"] * count
        self._addresses = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=False)]
        self._controllers = controller_addresses = {
            number: f"{host}:{port}"
            for number, (host, port) in enumerate(zip(hosts, ports[count:], strict=True), 1)
        }
        voters = ",".join(f"{one}@{controller_addresses[one]}" for one in controllers)
        self.nodes = []
        for number, kind in enumerate(kinds, 1):
            address = f"PLAINTEXT://{self._addresses[number - 1]}"
            is_controller = number in controllers
            controller = f",CONTROLLER://{controller_addresses[number]}" if is_controller else ""
            properties = {
                "process.roles": "broker,controller" if is_controller else "broker",
                "listeners": address + controller,
                "advertised.listeners": address,
                "controller.listener.names": "CONTROLLER",
                "inter.broker.listener.name": "PLAINTEXT",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "controller.quorum.voters": voters,
                "default.replication.factor": str(count),
                "min.insync.replicas": "2",
                "offsets.topic.num.partitions": "3",
                "offsets.topic.replication.factor": str(count),
                "transaction.state.log.num.partitions": "3",
                "transaction.state.log.replication.factor": str(count),
                "transaction.state.log.min.isr": "2",
                "group.initial.rebalance.delay.ms": "0",
                **(settings or {}),
            }
            prefix = () if prefixes is None else prefixes[number - 1]
            self.nodes.append(ClusterNode(root, kind, number, properties, java_options, prefix, directories))

    def __enter__(self) -> Self:
        for node in self.nodes:
            node.start()
        try:
            self.wait_for_brokers(len(self.nodes))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            # A test that has failed, or has ended some nodes, says enough by itself.
            is_over = self._is_checked and exc_info == (None, None, None)
            if is_over and all(node.is_running for node in self.nodes):
                self.check()
        finally:
            self._end()

    def check(self) -> None:
        """See that all replicas are in sync and equal, and no offset is missing: see `cluster_checks`."""
        wrong: list[str | None] = []

        def is_right() -> bool:
            wrong[:] = [find_wrong(self)]
            return wrong == [None]

        try:
            wait_until(is_right, "all replicas are equal")
        except AssertionError as error:
            raise AssertionError(f"{error}: {wrong[-1]}") from error

    def _end(self) -> None:
        # A broker of Apache Kafka that cannot ask its controller any more takes minutes to stop.
        for node in self.nodes:
            node.kill()

    def __getitem__(self, number: int) -> ClusterNode:
        return self.nodes[number - 1]

    def __iter__(self) -> Iterator[ClusterNode]:
        return iter(self.nodes)

    @property
    def bootstrap(self) -> str:
        return ",".join(self._addresses)

    def address(self, number: int) -> str:
        """Return where clients find a node."""
        return self._addresses[number - 1]

    def controller_address(self, number: int) -> str:
        """Return where brokers find a controller."""
        return self._controllers[number]

    @cached_property
    def admin(self) -> AdminClient:
        """A client that lives as long as the cluster: one that is collected answers nothing."""
        reconnecting = {"reconnect.backoff.max.ms": 500}
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, **reconnecting})

    def wait_for_brokers(self, count: int) -> None:
        """Wait until so many brokers serve."""
        admin = self.admin

        def all_serve() -> bool:
            for node in self.nodes:
                assert node.is_running, "it has ended"
            try:
                return len(admin.list_topics(timeout=5).brokers) >= count
            except Exception:
                return False

        wait_until(all_serve, f"{count} brokers serve")

    def start(self, *numbers: int) -> None:
        """Start some nodes of a cluster that was not entered, and wait until they serve."""
        for number in numbers:
            self[number].start()
        wait_until(lambda: {*numbers} <= self.serving(), f"nodes {numbers} serve")

    def serving(self) -> set[int]:
        """Return the nodes that serve, as far as one of them answers."""
        try:
            return set(self.admin.list_topics(timeout=5).brokers)
        except Exception:
            return set()

    def create_topic(
        self, name: str, partitions: int, configs: dict[str, str] | None = None, replicas: int | None = None
    ) -> None:
        """Create a topic with a replica on each node, unless told otherwise."""
        factor = len(self.nodes) if replicas is None else replicas
        topic = NewTopic(name, partitions, factor, config=configs or {})
        for future in self.admin.create_topics([topic]).values():
            future.result(60)

    def in_sync(self, topic: str) -> dict[int, set[int]]:
        """Return the in-sync replicas of each partition."""
        found = self.admin.list_topics(topic, timeout=30).topics[topic].partitions
        return {number: set(partition.isrs) for number, partition in found.items()}

    def replicas(self, topic: str) -> dict[int, list[int]]:
        """Return the nodes that have a replica of each partition, in order."""
        found = self.admin.list_topics(topic, timeout=30).topics[topic].partitions
        return {number: list(partition.replicas) for number, partition in found.items()}

    def reassign(self, topic: str, targets: Mapping[int, Sequence[int]]) -> None:
        """Have the replicas of partitions moved to other nodes."""
        partitions = tuple(
            ReassignablePartition(partition_index=number, replicas=tuple(target))
            for number, target in targets.items()
        )
        topics = (ReassignableTopic(name=topic, partitions=partitions),)
        with PlainClient(self._addresses[0]) as client:
            answer = client.ask(AlterPartitionReassignmentsRequest(timeout_ms=60_000, topics=topics))
        assert answer.error_code is ErrorCode.NONE, answer

    def wait_for_in_sync(self, topic: str, replicas: int) -> None:
        """Wait until so many replicas of each partition are in sync."""
        wait_until(
            lambda: all(len(one) >= replicas for one in self.in_sync(topic).values()),
            f"{replicas} replicas of {topic} are in sync",
        )

    def differences(self, topic: str) -> list[int]:
        """Return the partitions whose replicas are not the same bytes on all nodes."""
        numbers = sorted(self.in_sync(topic))
        return [n for n in numbers if len({node.log_bytes(topic, n) for node in self.nodes}) != 1]
