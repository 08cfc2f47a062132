"""Apache Kafka's own consumer and tools with our groups: the console consumer and kafka-consumer-groups."""

import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.java.jars import java_classpath, java_command
from tests.support.ottla_node import OttlaNode

pytestmark = pytest.mark.live_oracle

TOPIC = "java-groups"
GROUP = "java-group"
RECORDS = 100
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    settings = {"group.initial.rebalance.delay.ms": "0", "num.partitions": "3"}
    with OttlaNode(tmp_path_factory.mktemp("groups"), settings) as node:
        yield node


def run(node: OttlaNode, main_class: str, *arguments: str) -> str:
    command = java_command(java_classpath(), main_class, "--bootstrap-server", node.bootstrap, *arguments)
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def produce(node: OttlaNode, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in numbers:
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(30) == 0


def consume(node: OttlaNode, count: int) -> list[int]:
    arguments = ("--topic", TOPIC, "--group", GROUP, "--from-beginning", "--max-messages", str(count))
    output = run(node, CONSUMER, *arguments, "--timeout-ms", "60000")
    return sorted(int(line) for line in output.split())


def lags(node: OttlaNode) -> dict[int, tuple[int, int]]:
    """Return committed offset and lag by partition, as the tool describes the group."""
    output = run(node, GROUPS_TOOL, "--describe", "--group", GROUP)
    rows = [line.split() for line in output.splitlines() if line.startswith(GROUP)]
    return {int(row[2]): (int(row[3]), int(row[5])) for row in rows}


def test_javas_consumer_and_tools_use_groups(node: OttlaNode) -> None:
    produce(node, range(RECORDS))
    assert consume(node, RECORDS) == list(range(RECORDS))
    produce(node, range(RECORDS, RECORDS + 30))
    assert consume(node, 30) == list(range(RECORDS, RECORDS + 30)), "it goes on where the group was"
    committed = lags(node)
    assert sum(offset for offset, _ in committed.values()) == RECORDS + 30
    assert {lag for _, lag in committed.values()} == {0}

    assert "Empty" in run(node, GROUPS_TOOL, "--describe", "--group", GROUP, "--state")
    run(
        node, GROUPS_TOOL, "--group", GROUP, "--topic", TOPIC, "--reset-offsets", "--to-earliest", "--execute"
    )
    assert sum(lag for _, lag in lags(node).values()) == RECORDS + 30
    run(node, GROUPS_TOOL, "--group", GROUP, "--delete-offsets", "--topic", f"{TOPIC}:0")
    assert lags(node)[1][0] == 0
    assert "deletion" in run(node, GROUPS_TOOL, "--group", GROUP, "--delete").lower()
    assert GROUP not in run(node, GROUPS_TOOL, "--list").split()
