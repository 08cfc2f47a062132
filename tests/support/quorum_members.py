"""Controllers of one quorum, each a process: ours and Apache Kafka's, which can sit in the same one.

    quorum = QuorumOfProcesses(tmp_path, {1: OTTLA, 2: APACHE, 3: APACHE})
    quorum.start()
    quorum.wait_for_leader()
    quorum.member(2).kill()

Each is a broker, too, so that clients can talk to any of them.
"""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.java.apache_kafka import CLUSTER_ID, free_ports
from tests.java.jars import QUICK_START, java_classpath
from tests.support.plain_client import PlainClient

from ottla.quorum.random_id import random_id
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
)

OTTLA = "ottla"
APACHE = "apache"
PATIENCE_S = 120.0

DESCRIBE = DescribeQuorumRequest(
    topics=(
        DescribeQuorumTopic(
            topic_name="__cluster_metadata", partitions=(DescribeQuorumPartition(partition_index=0),)
        ),
    )
)


def wait_until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Return the first true value of a condition."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            value = condition()
        except (OSError, EOFError):
            value = None
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {patience_s} s")


class Member:
    """One process."""

    def __init__(self, root: Path, node_id: int, kind: str, ports: tuple[int, int]) -> None:
        self.root = root
        self.node_id = node_id
        self.kind = kind
        self.port, self.controller_port = ports
        self.directory_id = random_id(random.SystemRandom())
        self.data_directory = root / f"data{node_id}"
        self.settings: dict[str, str] = {}
        self.format_options: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def controller(self) -> str:
        return f"127.0.0.1:{self.controller_port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_path(self) -> Path:
        return self.root / f"node{self.node_id}.log"

    def start(self) -> None:
        """Start the process, and format its directory first if need be. It takes a while until it serves."""
        config = self.root / f"node{self.node_id}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))
        if not (self.data_directory / "meta.properties").exists():
            if self.kind == OTTLA:
                tool = [sys.executable, "-m", "ottla", "storage", "format", "--config", str(config)]
            else:
                tool = ["java", *QUICK_START, "-cp", java_classpath(), "kafka.tools.StorageTool"]
                tool += ["format", "-c", str(config)]
            done = subprocess.run(
                [*tool, "--cluster-id", CLUSTER_ID, *self.format_options], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
        if self.kind == OTTLA:
            command = [sys.executable, "-m", "ottla", "up", "--config", str(config)]
        else:
            command = ["java", *QUICK_START, "-Xmx384m", "-cp", java_classpath(), "kafka.Kafka", str(config)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def stop(self) -> None:
        """Stop in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End without a warning."""
        self._end(signal.SIGKILL)

    def read_log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _end(self, by: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(by)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"node {self.node_id} did not stop:\n{self.read_log()[-3000:]}") from None


class QuorumOfProcesses:
    """All members of one quorum. Leaving stops those that still run."""

    def __init__(
        self,
        root: Path,
        kinds: Mapping[int, str],
        *,
        is_static: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        ports = free_ports(2 * len(kinds))
        self.members = {
            node_id: Member(root, node_id, kind, (ports[2 * at], ports[2 * at + 1]))
            for at, (node_id, kind) in enumerate(kinds.items())
        }
        for member in self.members.values():
            member.settings = self._settings_of(member, is_static) | dict(settings or {})
            if not is_static:
                member.format_options = ["--initial-controllers", self._initial_controllers()]

    def __enter__(self) -> "QuorumOfProcesses":
        return self

    def __exit__(self, *exc_info: object) -> None:
        for member in self.members.values():
            member.kill()

    def start(self) -> None:
        for member in self.members.values():
            member.start()

    def add(self, root: Path, node_id: int, kind: str, settings: Mapping[str, str] | None = None) -> Member:
        """Prepare one more node, which is not a voter yet."""
        member = self.members[node_id] = Member(root, node_id, kind, free_ports(2))  # type: ignore[arg-type]
        member.settings = self._settings_of(member, False) | dict(settings or {})
        member.format_options = ["--no-initial-controllers"]
        return member

    def find_leader(self) -> int | None:
        """Return who leads, if a member that runs says so of itself."""
        for member in self.members.values():
            if member.is_running and self.describe(member) is not None:
                return member.node_id
        return None

    def describe(self, member: Member) -> Any:
        """Return what a member says about the quorum as its leader, or None if it does not lead."""
        try:
            with PlainClient(member.controller, timeout_s=5) as client:
                answer: DescribeQuorumResponse = client.ask(DESCRIBE)
        except (OSError, EOFError):
            return None
        if answer.error_code is not ErrorCode.NONE or not answer.topics:
            return None
        (partition,) = answer.topics[0].partitions
        return partition if partition.error_code is ErrorCode.NONE else None

    def wait_for_leader(self, *, other_than: int | None = None) -> int:
        """Wait until somebody leads who has committed something in its epoch."""

        def look() -> int | None:
            for member in self.members.values():
                if not member.is_running or member.node_id == other_than:
                    continue
                described = self.describe(member)
                if described is not None and described.high_watermark > 0:
                    return member.node_id
            return None

        try:
            leader: int = wait_until(look, "an election")
        except AssertionError as error:
            logs = "\n".join(
                f"== {one.node_id} ({one.kind})\n{one.read_log()[-1500:]}" for one in self.members.values()
            )
            raise AssertionError(f"{error}\n{logs}") from error
        return leader

    def _initial_controllers(self) -> str:
        return ",".join(f"{one.node_id}@{one.controller}:{one.directory_id}" for one in self.members.values())

    def _settings_of(self, member: Member, is_static: bool) -> dict[str, str]:
        if is_static:
            quorum = {
                "controller.quorum.voters": ",".join(
                    f"{one.node_id}@{one.controller}" for one in self.members.values()
                )
            }
        else:
            quorum = {
                "controller.quorum.bootstrap.servers": ",".join(
                    one.controller for one in self.members.values()
                )
            }
        return quorum | {
            "process.roles": "broker,controller",
            "node.id": str(member.node_id),
            "listeners": f"PLAINTEXT://{member.bootstrap},CONTROLLER://{member.controller}",
            "advertised.listeners": f"PLAINTEXT://{member.bootstrap},CONTROLLER://{member.controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(member.data_directory),
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
