"""Kafka's own command-line tools, as they come with 4.3.1. One JVM runs them all."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.java.java_tools import JavaTools
from tests.support.ottla_node import OttlaNode

pytestmark = pytest.mark.live_oracle

TOOLS = "org.apache.kafka.tools."


class Tools:
    """A JVM that runs tools, and the node that they talk to."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._tools = JavaTools()

    def run(self, tool: str, *arguments: str, reads: bytes = b"", expects: int = 0) -> str:
        """Run a tool against the node, and return what it wrote."""
        code, output = self._tools.run(tool, "--bootstrap-server", self.bootstrap, *arguments, reads=reads)
        assert code == expects, output[-2000:]
        return output

    def close(self) -> None:
        self._tools.close()


@pytest.fixture(scope="module")
def tools(ottla_node: OttlaNode) -> Iterator[Tools]:
    started = Tools(ottla_node.bootstrap)
    yield started
    started.close()


def create(tools: Tools, topic: str, partitions: int = 1) -> None:
    tools.run(f"{TOOLS}TopicCommand", "--create", "--topic", topic, "--partitions", str(partitions))


def test_topics_are_created_listed_described_grown_and_deleted(tools: Tools) -> None:
    create(tools, "tools-topic", 2)
    assert "tools-topic" in tools.run(f"{TOOLS}TopicCommand", "--list").splitlines()
    tools.run(f"{TOOLS}TopicCommand", "--alter", "--topic", "tools-topic", "--partitions", "3")
    described = tools.run(f"{TOOLS}TopicCommand", "--describe", "--topic", "tools-topic")
    assert "PartitionCount: 3" in described
    assert re.findall(r"Partition: (\d)", described) == ["0", "1", "2"]
    tools.run(f"{TOOLS}TopicCommand", "--delete", "--topic", "tools-topic")
    assert "tools-topic" not in tools.run(f"{TOOLS}TopicCommand", "--list").splitlines()


def test_configs_are_changed_and_described(tools: Tools) -> None:
    create(tools, "tools-configs")
    of_topic = ("--entity-type", "topics", "--entity-name", "tools-configs")
    tools.run("kafka.admin.ConfigCommand", "--alter", *of_topic, "--add-config", "retention.ms=123456")
    assert "retention.ms=123456" in tools.run("kafka.admin.ConfigCommand", "--describe", *of_topic)
    tools.run("kafka.admin.ConfigCommand", "--alter", *of_topic, "--delete-config", "retention.ms")
    assert "retention.ms=123456" not in tools.run("kafka.admin.ConfigCommand", "--describe", *of_topic)
    quota = ("--entity-type", "clients", "--entity-name", "tools-client")
    tools.run("kafka.admin.ConfigCommand", "--alter", *quota, "--add-config", "producer_byte_rate=1000000")
    assert "producer_byte_rate=1000000.0" in tools.run("kafka.admin.ConfigCommand", "--describe", *quota)


def test_console_consumer_reads_what_the_console_producer_wrote(tools: Tools) -> None:
    create(tools, "tools-console")
    tools.run(
        f"{TOOLS}ConsoleProducer", "--topic", "tools-console",
        "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
        reads=b"a:one\nb:two\nc:three\n",
    )  # fmt: skip
    read = tools.run(
        f"{TOOLS}consumer.ConsoleConsumer", "--topic", "tools-console", "--from-beginning",
        "--max-messages", "3", "--timeout-ms", "60000", "--formatter-property", "print.key=true",
    )  # fmt: skip
    assert [line for line in read.splitlines() if "\t" in line] == ["a\tone", "b\ttwo", "c\tthree"]


def test_offsets_are_told_and_records_deleted(tools: Tools, tmp_path: Path) -> None:
    create(tools, "tools-offsets")
    produced = tools.run(
        f"{TOOLS}ProducerPerformance", "--topic", "tools-offsets", "--num-records", "500",
        "--record-size", "100", "--throughput", "-1",
    )  # fmt: skip
    assert "500 records sent" in produced
    assert "tools-offsets:0:500" in tools.run(f"{TOOLS}GetOffsetShell", "--topic", "tools-offsets")
    request = tmp_path / "offsets.json"
    deleted = [{"topic": "tools-offsets", "partition": 0, "offset": 120}]
    request.write_text(json.dumps({"version": 1, "partitions": deleted}))
    answer = tools.run(f"{TOOLS}DeleteRecordsCommand", "--offset-json-file", str(request))
    assert re.search(r"tools-offsets-0\s+low_watermark: 120", answer)
    first = tools.run(f"{TOOLS}GetOffsetShell", "--topic", "tools-offsets", "--time", "-2")
    assert "tools-offsets:0:120" in first


def test_log_directories_are_described(tools: Tools) -> None:
    create(tools, "tools-directories", 2)
    described = tools.run(f"{TOOLS}LogDirsCommand", "--describe", "--topic-list", "tools-directories")
    told = json.loads(next(line for line in described.splitlines() if line.startswith("{")))
    directories = told["brokers"][0]["logDirs"]
    assert [directory["error"] for directory in directories] == [None]
    partitions = sorted(one["partition"] for one in directories[0]["partitions"])
    assert partitions == ["tools-directories-0", "tools-directories-1"]


def test_the_quorum_is_described(tools: Tools) -> None:
    status = tools.run(f"{TOOLS}MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId:\s+0\b", status)
    replication = tools.run(f"{TOOLS}MetadataQuorumCommand", "describe", "--replication")
    assert "Leader" in replication


def test_api_versions_are_all_usable(tools: Tools) -> None:
    told = tools.run(f"{TOOLS}BrokerApiVersionsCommand")
    assert re.search(r"Produce\(0\): \d+ to 13 \[usable: 13\]", told)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", told)


def test_latency_is_measured_end_to_end(tools: Tools) -> None:
    create(tools, "tools-latency")
    measured = tools.run(
        f"{TOOLS}EndToEndLatency", "--topic", "tools-latency", "--num-records", "50",
        "--producer-acks", "all", "--record-size", "64",
    )  # fmt: skip
    assert "Percentiles: 50th" in measured


def test_a_tool_that_is_refused_says_why(tools: Tools) -> None:
    create(tools, "tools-twice")
    refused = tools.run(f"{TOOLS}TopicCommand", "--create", "--topic", "tools-twice", expects=1)
    assert "already exists" in refused
