"""Groups of the new protocol (KIP-848) with real members: librdkafka, Java's console consumer and tools."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.clients.group_traffic import Traffic
from tests.java.jars import java_classpath, java_command
from tests.support.ottla_node import OttlaNode

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
NEW = {"group_protocol": "consumer"}
QUICK_TIMES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "num.partitions": "3",
}
SETTLE_TIMEOUT_S = 240


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    with OttlaNode(tmp_path_factory.mktemp("groups"), QUICK_TIMES) as node:
        yield node


@pytest.fixture
def traffic(node: OttlaNode, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Traffic]:
    topic = request.node.name.translate(str.maketrans("[]- ", "...."))[:60]
    traffic = Traffic(node.bootstrap, topic, tmp_path)
    yield traffic
    traffic.kill_all()


def described(node: OttlaNode, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    return admin.describe_consumer_groups([group])[group].result(30)


def assignments(traffic: Traffic, member: str) -> int:
    return len([note for note in traffic.notes(member) if note.what == "assigned"])


# librdkafka


def test_a_group_grows_and_shrinks_while_records_flow(traffic: Traffic, node: OttlaNode) -> None:
    with traffic.flowing():
        first = traffic.start_member(**NEW)
        traffic.wait_for_work(first)
        second, third = traffic.start_member(**NEW), traffic.start_member(**NEW)
        for member in (second, third, first):
            traffic.wait_for_work(member)
        group = described(node, traffic.group)
        assert group.type is ConsumerGroupType.CONSUMER
        assert len(group.members) == 3
        traffic.stop_member(second)
        traffic.stop_member(first)
        traffic.wait_for_work(third)
    traffic.drain()
    traffic.stop_all()
    assert traffic.judge() == 0, "who gives its partitions back has committed everything"


def test_static_members_restart_without_disturbing_others(traffic: Traffic) -> None:
    with traffic.flowing():
        first = traffic.start_member(group_instance_id="one", **NEW)
        second = traffic.start_member(group_instance_id="two", **NEW)
        for member in (first, second):
            traffic.wait_for_work(member)
        assigned = assignments(traffic, first)
        traffic.stop_member(second)
        again = traffic.start_member(group_instance_id="two", **NEW)
        traffic.wait_for_work(again)
        traffic.wait_for_work(first)
        assert assignments(traffic, first) == assigned, "the other one was not told of the restart"
    traffic.drain()
    traffic.stop_all()
    assert traffic.judge() == 0


def test_members_and_broker_are_killed_and_nothing_is_skipped(traffic: Traffic, node: OttlaNode) -> None:
    with traffic.flowing():
        first, second = traffic.start_member(**NEW), traffic.start_member(**NEW)
        for member in (first, second):
            traffic.wait_for_work(member)
        traffic.kill_member(first)
        third = traffic.start_member(**NEW)
        node.kill()
        node.start()
        for member in (second, third):
            traffic.wait_for_work(member)
        node.kill()
        traffic.kill_member(second)
        node.start()
        traffic.wait_for_work(third)
    traffic.drain()
    traffic.stop_all()
    traffic.judge()


def test_a_group_goes_over_to_the_new_protocol_and_back_while_records_flow(
    traffic: Traffic, node: OttlaNode
) -> None:
    # With its sticky assignors librdkafka puts data of its own into assignments: no coordinator may drop it.
    classic = {"partition_assignment_strategy": "range"}
    with traffic.flowing():
        old = [traffic.start_member(**classic), traffic.start_member(**classic)]
        for member in old:
            traffic.wait_for_work(member)
        assert described(node, traffic.group).type is ConsumerGroupType.CLASSIC
        new = [traffic.start_member(**NEW), traffic.start_member(**NEW)]
        for member in (*old, *new):
            traffic.wait_for_work(member)
        assert described(node, traffic.group).type is ConsumerGroupType.CONSUMER
        for member in old:
            traffic.stop_member(member)
        for member in new:
            traffic.wait_for_work(member)
        back = traffic.start_member(**classic)
        traffic.wait_for_work(back)
        for member in new:
            traffic.stop_member(member)
        traffic.wait_for_work(back)
        assert described(node, traffic.group).type is ConsumerGroupType.CLASSIC
    traffic.drain()
    traffic.stop_all()
    traffic.judge()


def test_topics_are_subscribed_by_an_expression(node: OttlaNode) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for made in admin.create_topics([NewTopic(f"regex-{name}", 2, 1) for name in "ab"]).values():
        made.result(30)
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "regex-group",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe(["^regex-[ab]$"])
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while len(consumer.assignment()) < 4:
            assert time.monotonic() < deadline, consumer.assignment()
            consumer.poll(0.1)
        assert {where.topic for where in consumer.assignment()} == {"regex-a", "regex-b"}
    finally:
        consumer.close()


# Java


def run(node: OttlaNode, main_class: str, *arguments: str) -> str:
    command = java_command(java_classpath(), main_class, "--bootstrap-server", node.bootstrap, *arguments)
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def produce(node: OttlaNode, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in numbers:
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0


def consume(node: OttlaNode, topic: str, group: str, count: int) -> list[int]:
    output = run(
        node, CONSUMER, "--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count),
        "--timeout-ms", "60000", "--command-property", "group.protocol=consumer",
    )  # fmt: skip
    return sorted(int(line) for line in output.split())


@pytest.mark.live_oracle
def test_javas_consumer_goes_on_where_the_group_was(node: OttlaNode) -> None:
    produce(node, "java-848", range(100))
    assert consume(node, "java-848", "java-848-group", 100) == list(range(100))
    produce(node, "java-848", range(100, 130))
    assert consume(node, "java-848", "java-848-group", 30) == list(range(100, 130))
    output = run(node, GROUPS_TOOL, "--describe", "--group", "java-848-group")
    rows = [line.split() for line in output.splitlines() if line.startswith("java-848-group")]
    assert sum(int(row[4]) for row in rows) == 130, output


@pytest.mark.live_oracle
def test_javas_tools_describe_a_group_in_use(node: OttlaNode) -> None:
    topic, group = "java-848-used", "java-848-used-group"
    produce(node, topic, range(30))
    command = java_command(
        java_classpath(), CONSUMER, "--bootstrap-server", node.bootstrap, "--topic", topic, "--group", group,
        "--from-beginning", "--command-property", "group.protocol=consumer",
    )  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as consumer:
        try:
            assert consumer.stdout is not None
            assert consumer.stdout.readline(), "it reads"
            state = run(node, GROUPS_TOOL, "--describe", "--group", group, "--state", "--verbose")
            members = run(node, GROUPS_TOOL, "--describe", "--group", group, "--members", "--verbose")
            listed = run(node, GROUPS_TOOL, "--list", "--type", "consumer", "--state")
        finally:
            consumer.terminate()
            consumer.wait(30)
    header, row = (line.split() for line in state.strip().splitlines())
    fields = dict(zip(header[1:], row[1:], strict=False))
    assert row[0] == group
    assert "Stable" in row
    assert fields, header
    assert f"{topic}(0,1,2)" in members or f"{topic}:0,1,2" in members, members
    assert any(line.split()[:2] == [group, "Consumer"] for line in listed.splitlines()), listed
