"""Kafka Streams 4.3.1 with streams groups: exact counts, whatever is killed, and Kafka's tool for them."""

import json
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.java.jars import compiled, java_classpath, java_command
from tests.support.ottla_node import OttlaNode, ottla_command

pytestmark = pytest.mark.live_oracle

APPLICATION = "word-counts"
SOURCE, RESULTS = "words", "counts"
WORDS = 37
GROUPS_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
SETTINGS = {
    "num.partitions": "4",
    "group.streams.initial.rebalance.delay.ms": "100",
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "1000",
    "group.min.session.timeout.ms": "1000",
}


class Application:
    """A process of the application, with two threads."""

    def __init__(self, node: OttlaNode, state: Path, protocol: str = "streams") -> None:
        self._log = state.with_suffix(".log")
        arguments = (node.bootstrap, APPLICATION, str(state), protocol, SOURCE, RESULTS)
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                java_command(compiled("StreamsCounts.java"), "StreamsCounts", *arguments),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """Close standard input, at which the application leaves its group and ends."""
        self._process.communicate(timeout=120)
        assert "NOT_RUNNING" in self._log.read_text(), self._log.read_text()


class Counts:
    """What was produced, and what the application has counted."""

    def __init__(self, node: OttlaNode) -> None:
        self._node = node
        self._producer = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
        self._consumer = Consumer(
            {
                "bootstrap.servers": node.bootstrap,
                "group.id": "check",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe([RESULTS])
        self.produced: Counter[str] = Counter()
        self.counted: dict[str, int] = {}

    def produce(self, count: int) -> None:
        for number in range(count):
            word = f"word-{number % WORDS}"
            self._producer.produce(SOURCE, word.encode(), partition=number % 4)
            self.produced[word] += 1
        assert self._producer.flush(120) == 0

    def read_some(self) -> bool:
        """Read results. True when all words are counted."""
        for message in self._consumer.consume(1000, 0.5):
            if message.error() is None:
                self.counted[(message.key() or b"").decode()] = int(message.value() or 0)
        return self.counted == self.produced

    def are_exact(self) -> None:
        deadline_s = time.monotonic() + 240
        while not self.read_some():
            assert time.monotonic() < deadline_s, f"{self.counted} instead of {self.produced}"
        # Nothing is counted a second time later on.
        assert self.read_some()

    def close(self) -> None:
        self._consumer.close()


def tool(node: OttlaNode, *arguments: str) -> str:
    command = java_command(java_classpath(), GROUPS_TOOL, "--bootstrap-server", node.bootstrap, *arguments)
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_counts_are_exact_whatever_is_killed(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "node", SETTINGS) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        for created in admin.create_topics([NewTopic(SOURCE, 4, 1), NewTopic(RESULTS, 4, 1)]).values():
            created.result()
        counts = Counts(node)
        counts.produce(1000)
        with Application(node, tmp_path / "first") as first, Application(node, tmp_path / "second") as second:
            counts.are_exact()
            described = tool(node, "--describe", "--group", APPLICATION, "--members", "--verbose")
            assert described.count(APPLICATION) >= 4, described
            assert APPLICATION in tool(node, "--list")
            ours = subprocess.run(
                ottla_command("group", "describe", APPLICATION, "--bootstrap", node.bootstrap, "--json"),
                text=True,
                capture_output=True,
                timeout=120,
            )
            shown = json.loads(ours.stdout)
            assert (shown["type"], len(shown["members"]), shown["lag"]) == ("streams", 4, 0), ours

            counts.produce(500)
            node.kill()
            node.start()
            counts.produce(500)
            second.kill()
            counts.produce(500)
            counts.are_exact()
            first.stop()

        # Offline, the application moves to the classic protocol and back, with its offsets and its state.
        for protocol in ("classic", "streams"):
            counts.produce(500)
            with Application(node, tmp_path / "first", protocol) as application:
                counts.are_exact()
                application.stop()
        counts.close()
