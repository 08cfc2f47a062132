"""Apache Kafka's own programs for testing transactions, against a node that is killed again and again.

    python -m tests.cluster.apache_copies --messages 100000 --bounces 20

`VerifiableProducer` fills a topic, one `TransactionalMessageCopier` for each partition copies it in
transactions of which every third is aborted, and `VerifiableConsumer` reads the copy. The node is killed
whenever another part of the messages is copied. In the end each partition of the copy must be its original:
nothing lost, nothing twice, nothing out of order.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.java.jars import java_classpath, java_command
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

PARTITIONS = 2
ORIGINAL, COPY = "original", "copy"
TRANSACTION_SIZE = 100
SECONDS_MAX = 240

Values = dict[int, list[str]]
"""By partition, values in the order of their offsets."""


def copy_and_compare(root: Path, messages: int, bounces: int, is_group: bool) -> None:
    """Fill a topic, copy it while the node is killed so many times, and compare."""
    root.mkdir(parents=True, exist_ok=True)
    with OttlaNode(root / "node") as node:
        with PlainClient(node.bootstrap) as client:
            for topic in (ORIGINAL, COPY):
                create_topic(client, topic, PARTITIONS)
        written = produce(node.bootstrap, root, messages)
        copiers = [Copier(node.bootstrap, partition, is_group) for partition in range(PARTITIONS)]
        try:
            bounce(node, copiers, messages, bounces)
            for copier in copiers:
                copier.join()
        finally:
            for copier in copiers:
                copier.stop()
        copied = consume(node.bootstrap, root, messages)
    assert sum(map(len, written.values())) == messages
    for partition, values in written.items():
        assert copied[partition] == values, f"partition {partition} differs from its original"


def bounce(node: OttlaNode, copiers: "list[Copier]", messages: int, bounces: int) -> None:
    """Kill the node and start it again each time that another part is copied."""
    for number in range(1, bounces + 1):
        deadline = time.monotonic() + SECONDS_MAX
        while sum(copier.copied for copier in copiers) < number * messages // (bounces + 1):
            assert time.monotonic() < deadline, f"nothing moves after {number - 1} kills"
            time.sleep(0.005)
        node.kill()
        node.start()


class Copier:
    """A copier of one partition, or of what its group gives it; started again as often as it gives up."""

    def __init__(self, bootstrap: str, number: int, is_group: bool) -> None:
        group = "copiers" if is_group else f"copier-{number}"
        self._command = java_command(
            java_classpath(),
            "org.apache.kafka.tools.TransactionalMessageCopier",
            "--broker-list", bootstrap,
            "--input-topic", ORIGINAL,
            "--input-partition", str(number),
            "--output-topic", COPY,
            "--transactional-id", f"copier-{number}",
            "--consumer-group", group,
            "--transaction-size", str(TRANSACTION_SIZE),
            "--transaction-timeout", "10000",
            "--enable-random-aborts",
            *(["--group-mode", "--use-group-metadata"] if is_group else []),
        )  # fmt: skip
        self.copied = 0
        self._is_over = Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = Thread(target=self._run, name=f"copier-{number}")
        self._thread.start()

    def join(self) -> None:
        """Wait until everything is copied."""
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive(), f"a copier is stuck after {self.copied} messages"

    def stop(self) -> None:
        """End it, wherever it is."""
        self._is_over.set()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            before = self.copied
            with subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as self._process:
                for status in _events(self._process):
                    self.copied = before + status.get("totalProcessed", 0)
            if self._process.returncode == 0:
                return


def produce(bootstrap: str, root: Path, messages: int) -> Values:
    """Fill the topic; return what was acknowledged."""
    settings = root / "producer.properties"
    settings.write_text("enable.idempotence=true\nretries=2147483647\n")
    events = _run_tool(
        "VerifiableProducer",
        "--bootstrap-server", bootstrap,
        "--topic", ORIGINAL,
        "--max-messages", str(messages),
        "--command-config", str(settings),
    )  # fmt: skip
    return _values(event for event in events if event["name"] == "producer_send_success")


def consume(bootstrap: str, root: Path, messages: int) -> Values:
    """Read what is committed of the copy, by as many messages as there should be, and see that it is all."""
    settings = root / "consumer.properties"
    settings.write_text("isolation.level=read_committed\n")
    events = _run_tool(
        "VerifiableConsumer",
        "--bootstrap-server", bootstrap,
        "--topic", COPY,
        "--group-id", "reader",
        "--max-messages", str(messages),
        "--reset-policy", "earliest",
        "--verbose",
        "--command-config", str(settings),
    )  # fmt: skip
    return _values(event for event in events if event["name"] == "record_data")


def _values(events: Iterator[dict[str, Any]]) -> Values:
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for event in events:
        found[event["partition"]].append((event["offset"], event["value"]))
    return {partition: [value for _, value in sorted(pairs)] for partition, pairs in found.items()}


def _run_tool(name: str, *arguments: str) -> Iterator[dict[str, Any]]:
    command = java_command(java_classpath(), f"org.apache.kafka.tools.{name}", *arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield from _events(process)
    assert process.returncode == 0, f"{name} ended with {process.returncode}"


def _events(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            yield json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--bounces", type=int, default=20)
    parser.add_argument("--group", action="store_true", help="let a group hand out the partitions")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="ottla-copies-"))
    print(f"files in {root} if something is wrong", flush=True)
    began = time.monotonic()
    copy_and_compare(root, options.messages, options.bounces, options.group)
    print(
        f"{options.messages} messages are copied exactly once and in order, through {options.bounces} kills, "
        f"in {time.monotonic() - began:.0f} s"
    )
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
