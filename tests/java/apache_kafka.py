"""A real Apache Kafka 4.3.1 on loopback, for tests that ask it or hand it a directory.

    with ApacheKafka(tmp_path) as kafka:
        client = PlainClient(kafka.bootstrap)

It formats its data directory unless that has been done, takes two free ports below 32768 (the system hands
out those above for outgoing connections) and is stopped by SIGTERM, as a careful operator would. A start
takes about five seconds, so share one where a test does not need its own.
"""

import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.java.jars import QUICK_START, java_classpath

from ottla.testing.ports import free_port

CLUSTER_ID = "b3R0bGEtdGVzdC1jbHVzdA"

_START_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 60


class ApacheKafka:
    """One node, broker and controller in one. Entering starts it, leaving stops it."""

    def __init__(
        self,
        root: Path,
        properties: Mapping[str, str] | None = None,
        *,
        data_directory: Path | None = None,
        java_options: Sequence[str] = (*QUICK_START, "-Xmx512m"),
        format_options: Sequence[str] = ("--standalone",),
    ) -> None:
        """Prepare a node that keeps its files below `root`.

        `properties` are put on top of what a single node needs. A `data_directory` that has been formatted,
        by whomever, is taken as it is. The `java_options` start quickly; a benchmark wants others.
        `format_options` say which quorum the node belongs to.
        """
        self._java_options = java_options
        self._format_options = format_options
        self.root = root
        self.data_directory = data_directory or root / "data"
        self.port, self.controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.properties = {**self._needed_properties(), **(properties or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def log_path(self) -> Path:
        """Where the server writes what it has to say."""
        return self.root / "server.log"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self.root.mkdir(parents=True, exist_ok=True)
        settings = self.root / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        if not (self.data_directory / "meta.properties").exists():
            self._run_tool(
                "kafka.tools.StorageTool",
                "format",
                *self._format_options,
                "-t",
                CLUSTER_ID,
                "-c",
                str(settings),
            )
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                ["java", *self._java_options, "-cp", java_classpath(), "kafka.Kafka", str(settings)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._wait_until_reachable(self._process)

    def stop(self) -> None:
        """Ask the server to stop, as an operator does, and wait for it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server without a warning."""
        self._end(signal.SIGKILL)

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server runs"
        return self._process.pid

    def read_log(self) -> str:
        """Return what the server has said so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _needed_properties(self) -> dict[str, str]:
        listeners = f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "0",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data_directory),
            "offsets.topic.num.partitions": "5",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "5",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "3",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }

    def _run_tool(self, main_class: str, *arguments: str) -> None:
        command = ["java", *QUICK_START, "-cp", java_classpath(), main_class, *arguments]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{main_class} failed: {done.stdout[-2000:]}"

    def _wait_until_reachable(self, process: "subprocess.Popen[bytes]") -> None:
        for _ in range(_START_TIMEOUT_S * 10):
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                        return
            else:
                break
        self.kill()
        raise AssertionError(f"Apache Kafka did not start:\n{self.read_log()[-4000:]}")

    def _end(self, by: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(by)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("Apache Kafka did not stop when asked to") from None


def free_ports(count: int) -> tuple[int, ...]:
    """Return ports below 32768 that nothing listens on just now."""
    return tuple(free_port() for _ in range(count))
