"""The two brokers side by side: Apache Kafka 4.3.1 and Ottla, each in a process of its own."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Noise
from confluent_kafka import Producer
from tests.java.apache_kafka import ApacheKafka
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

_JAVA_OPTIONS = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC")


class Broker(NamedTuple):
    """A running broker."""

    name: str
    port: int
    pid: int
    started_s: float
    """How long it took from the start of the process to the first acknowledged record."""
    started_noise: float = 0.0
    """The share of the machine that others used meanwhile."""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """Return the CPU time, user and kernel, that the broker's process has used."""
        # The number of another process's CPU clock, as `clock_getcpuclockid` makes it. It counts nanoseconds,
        # where /proc counts ticks of 10 ms.
        return time.clock_gettime((~self.pid << 3) | 2)

    def resident_bytes(self) -> int:
        """Return how much memory the broker's process has resident."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def create_topic(self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> Uuid:
        """Create a topic; return its id."""
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in (settings or {}).items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=tuple(configs)
        )
        with PlainClient(self.bootstrap) as client:
            result = client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=60_000)).topics[0]
        assert result.error_code is ErrorCode.NONE, result
        topic_id: Uuid = result.topic_id
        return topic_id


@contextmanager
def both_brokers(more: Mapping[str, str] | None = None) -> Iterator[tuple[Broker, Broker]]:
    """Run Ottla and Apache Kafka, with more settings for both; yield them in this order."""
    root = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    ottla = OttlaNode(root / "ottla", {"num.partitions": "1", **(more or {})})
    settings = {"num.partitions": "1", "offsets.topic.num.partitions": "50", **(more or {})}
    apache = ApacheKafka(root / "apache", settings, java_options=_JAVA_OPTIONS)
    # Formatting is not part of a start, and Kafka's own needs a JVM: both do it before the clock runs.
    apache.start()
    apache.stop()
    ottla.start()
    ottla.stop()
    try:
        yield _start("Ottla", ottla), _start("Apache Kafka", apache)
    finally:
        ottla.stop()
        apache.stop()
        shutil.rmtree(root, ignore_errors=True)


def _start(name: str, server: OttlaNode | ApacheKafka) -> Broker:
    noise = Noise()
    start = time.perf_counter()
    server.start()
    _first_record(server.bootstrap)
    broker = Broker(name, server.port, server.pid, time.perf_counter() - start)
    return broker._replace(started_noise=noise.share(broker.cpu_seconds()))


def _first_record(bootstrap: str) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    producer.produce(
        "first", b"1", on_delivery=lambda error, _message: failures.append(error) if error else None
    )
    assert producer.flush(60) == 0, "the first record was not acknowledged"
    assert not failures, failures
