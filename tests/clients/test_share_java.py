"""Java's KafkaShareConsumer and the share tools with our share groups, also when the node is killed."""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.java.jars import compiled, java_classpath, java_command
from tests.support.ottla_node import OttlaNode

from ottla.testing.process_cluster import ProcessCluster

pytestmark = pytest.mark.live_oracle

TOPIC = "share-java"
GROUP = "share-group"
TIMEOUT_S = 180
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SETTINGS = {"num.partitions": "2", "group.share.min.record.lock.duration.ms": "1000"}


class JavaMember:
    """A member in a JVM, and what it has written."""

    def __init__(self, bootstrap: str, released_of_hundred: int = 0) -> None:
        command = java_command(
            compiled("ShareConsumers.java"), "ShareConsumers",
            bootstrap, GROUP, TOPIC, str(released_of_hundred),
        )  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.strip())

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.close()
        try:
            self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OttlaNode]:
    with OttlaNode(tmp_path, SETTINGS) as node:
        yield node


def run(bootstrap: str, main_class: str, *arguments: str) -> str:
    command = java_command(java_classpath(), main_class, "--bootstrap-server", bootstrap, *arguments)
    done = subprocess.run(command, text=True, capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def configure(bootstrap: str, *configs: str) -> None:
    run(
        bootstrap, "kafka.admin.ConfigCommand", "--alter", "--entity-type", "groups",
        "--entity-name", GROUP, "--add-config", ",".join(configs),
    )  # fmt: skip


def produce(bootstrap: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in numbers:
        producer.produce(TOPIC, f"v{number}")
        producer.poll(0)
    assert producer.flush(60) == 0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def said(members: list[JavaMember], mark: str) -> Counter[str]:
    return Counter(line.split()[1] for one in members for line in list(one.lines) if line.startswith(mark))


def is_done(members: list[JavaMember], wanted: set[str], bootstrap: str) -> bool:
    """Say whether members have accepted everything. Where an answer was lost, the group must have no lag."""
    if not {*said(members, "A "), *said(members, "U ")} >= wanted:
        return False
    return set(said(members, "A ")) >= wanted or sum(lags(bootstrap)) == 0


def lags(bootstrap: str) -> list[int]:
    """Return the lags of partitions, as the tool describes the group."""
    rows = [line.split() for line in run(bootstrap, GROUPS_TOOL, "--describe", "--group", GROUP).splitlines()]
    return [int(row[4]) for row in rows if row and row[0] == GROUP and row[4].isdecimal()]


def test_nothing_is_lost_and_nothing_that_was_acknowledged_comes_back_through_kills(node: OttlaNode) -> None:
    produce(node.bootstrap, range(1))
    configure(node.bootstrap, "share.auto.offset.reset=earliest", "share.record.lock.duration.ms=2000")
    members = [JavaMember(node.bootstrap), JavaMember(node.bootstrap, released_of_hundred=20)]
    try:
        for wave in range(2):
            produce(node.bootstrap, range(1 + wave * 300, 1 + (wave + 1) * 300))
            wait_until(lambda wave=wave: len(said(members, "A ")) > 1 + wave * 300 + 50, "members go on")  # type: ignore[misc]
            node.kill()
            node.start()
        wanted = {f"v{number}" for number in range(601)}
        wait_until(lambda: is_done(members, wanted, node.bootstrap), "every record is accepted")
    finally:
        for member in members:
            member.stop()
    assert max(said(members, "A ").values()) == 1, "what was acknowledged is done"
    for member in members:
        assert not [line for line in member.lines if line.startswith("D ") and int(line.split()[2]) > 5]
    released = said(members, "R ")
    assert released, "some were released"
    assert set(released) <= wanted


def test_a_queue_over_three_nodes_survives_each_of_them(tmp_path: Path) -> None:
    """States are on other nodes than the records, and both move."""
    settings = {
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "share.coordinator.state.topic.num.partitions": "5",
        **SETTINGS,
    }
    with ProcessCluster(tmp_path, settings=settings) as cluster:
        cluster.create_topic(TOPIC, 4)
        configure(cluster.bootstrap, "share.auto.offset.reset=earliest", "share.record.lock.duration.ms=2000")
        members = [JavaMember(cluster.bootstrap), JavaMember(cluster.bootstrap, released_of_hundred=20)]
        try:
            for number in (1, 2, 3):
                produce(cluster.bootstrap, range((number - 1) * 400, number * 400))
                wanted = 400 * (number - 1) + 50
                wait_until(lambda wanted=wanted: len(said(members, "A ")) > wanted, "members go on")  # type: ignore[misc]
                cluster[number].kill()
                cluster[number].start()
            all_of_them = {f"v{number}" for number in range(1200)}
            wait_until(lambda: is_done(members, all_of_them, cluster.bootstrap), "every record is accepted")
        finally:
            for member in members:
                member.stop()
    assert max(said(members, "A ").values()) == 1, "what was acknowledged is done"


def test_javas_share_tools_describe_reset_and_delete(node: OttlaNode) -> None:
    where = node.bootstrap
    produce(where, range(40))
    configure(where, "share.auto.offset.reset=earliest")
    limits = ("--max-messages", "40", "--timeout-ms", "60000")
    output = run(where, CONSUMER, "--topic", TOPIC, "--group", GROUP, *limits)
    assert len({line for line in output.split() if line.startswith("v")}) == 40
    assert GROUP in run(where, GROUPS_TOOL, "--list").split()
    state = ("--describe", "--group", GROUP, "--state")
    wait_until(lambda: "Empty" in run(where, GROUPS_TOOL, *state), "it has left")
    assert sum(lags(where)) == 0
    reset = ("--reset-offsets", "--to-earliest", "--execute")
    run(where, GROUPS_TOOL, "--group", GROUP, "--topic", TOPIC, *reset)
    assert sum(lags(where)) == 40
    run(where, GROUPS_TOOL, "--group", GROUP, "--topic", TOPIC, "--delete-offsets")
    run(where, GROUPS_TOOL, "--group", GROUP, "--delete")
    assert GROUP not in run(where, GROUPS_TOOL, "--list").split()
