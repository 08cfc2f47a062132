"""What real clients get out of a broker: librdkafka, and Kafka's own tools."""

import re
import subprocess
import time
from collections.abc import Iterator

from benchmarks.node_brokers import Broker
from benchmarks.node_compare import Brokers, Measure, Row, compare
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.java.jars import java_classpath


def librdkafka_rows(brokers: Brokers, scale: float) -> Iterator[Row]:
    """Throughput of a client that is fast enough to keep a broker busy."""
    for broker in brokers:
        # Apache Kafka never waits for the disk. Ottla does, unless a topic is told not to.
        settings = {"ottla.acks.all.sync": "false"} if broker.name == "Ottla" else {}
        broker.create_topic("unsynced", settings=settings)
    # Enough that connecting and the first fetches, a fifth of a second, do not count.
    small, big = int(1_500_000 * scale), int(400_000 * scale)

    def row(what: str, measure: Measure, goal: float = 0) -> Row:
        return compare(f"librdkafka {what}", "k/s", brokers, measure, goal, more_is_better=True)

    yield row("produces 100 B, acks=1", _produce("rd-100", 100, small, "1"), 1.3)
    yield row("produces 1 KB, acks=1", _produce("rd-1000", 1_000, big, "1"), 1.3)
    yield row("produces 1 KB, acks=all", _produce("rd-synced", 1_000, big, "all"))
    yield row("produces 1 KB, acks=all, no sync", _produce("unsynced", 1_000, big, "all"))
    yield row("consumes 100 B", _consume("rd-100", small), 1.3)
    yield row("consumes 1 KB", _consume("rd-1000", big), 1.3)


def _produce(topic: str, value_bytes: int, records: int, acks: str) -> Measure:
    def measure(broker: Broker) -> float:
        settings = {"bootstrap.servers": broker.bootstrap, "acks": acks, "linger.ms": 5}
        # All records fit into the queue, so that the producer never has to wait for room.
        queue = {"queue.buffering.max.messages": records + 1, "queue.buffering.max.kbytes": 1 << 20}
        producer = Producer({**settings, **queue})
        value = b"v" * value_bytes
        producer.produce(topic, value)
        producer.flush(60)
        start = time.perf_counter()
        for _ in range(records):
            producer.produce(topic, value)
        assert producer.flush(120) == 0
        return records / (time.perf_counter() - start) / 1e3

    return measure


def _consume(topic: str, records: int) -> Measure:
    def measure(broker: Broker) -> float:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "bench", "fetch.wait.max.ms": 50}
        # Whenever 100,000 records are queued, librdkafka fetches nothing for a second by default: the faster
        # a broker fills the queue, the longer its consumer would wait.
        consumer = Consumer({**settings, "fetch.queue.backoff.ms": 5})
        consumer.assign([TopicPartition(topic, 0, 0)])
        start, seen = time.perf_counter(), 0
        while seen < records:
            seen += len(consumer.consume(10_000, timeout=5))
        taken_s = time.perf_counter() - start
        consumer.close()
        return seen / taken_s / 1e3

    return measure


def java_rows(brokers: Brokers, scale: float) -> Iterator[Row]:
    """Throughput of Kafka's own clients, by Kafka's own tools."""
    small, big = int(1_000_000 * scale), int(300_000 * scale)

    def row(what: str, measure: Measure, goal: float) -> Row:
        return compare(f"Java {what}", "k/s", brokers, measure, goal, more_is_better=True)

    yield row("produces 100 B", _java_produce(100, small), 1.6)
    yield row("produces 1 KB", _java_produce(1_000, big), 1.5)
    yield row("consumes 100 B", _java_consume(100, small), 1.3)
    yield row("consumes 1 KB", _java_consume(1_000, big), 1.3)


def _java_produce(value_bytes: int, records: int) -> Measure:
    def measure(broker: Broker) -> float:
        text = _java_tool(
            "org.apache.kafka.tools.ProducerPerformance", "--topic", f"java-{value_bytes}",
            "--num-records", str(records), "--record-size", str(value_bytes), "--throughput", "-1",
            "--bootstrap-server", broker.bootstrap, "--command-property", "acks=1",
        )  # fmt: skip
        rates = re.findall(r"([\d.]+) records/sec", text)
        return float(rates[-1]) / 1e3

    return measure


def _java_consume(value_bytes: int, records: int) -> Measure:
    def measure(broker: Broker) -> float:
        text = _java_tool(
            "org.apache.kafka.tools.ConsumerPerformance", "--topic", f"java-{value_bytes}",
            "--num-records", str(records), "--bootstrap-server", broker.bootstrap,
            "--group", f"bench-{time.time_ns()}",
        )  # fmt: skip
        # start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
        fields = [field.strip() for field in text.strip().splitlines()[-1].split(",")]
        return float(fields[9]) / 1e3

    return measure


def _java_tool(main_class: str, *arguments: str) -> str:
    command = ["java", "-Xmx512m", "-cp", java_classpath(), main_class, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{main_class}: {done.stdout[-1000:]}{done.stderr[-1000:]}"
    return done.stdout
