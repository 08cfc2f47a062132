"""What a request costs a broker: prepared requests over plain sockets, and the CPU time of its process."""

import time
from collections.abc import Iterator

from benchmarks.measure import percentile
from benchmarks.node_brokers import Broker
from benchmarks.node_compare import Brokers, Figure, Measure, Row, compare, compare_all
from benchmarks.node_load import connect, exchange, fetch_frame, produce_frame, read_answer, round_trip
from confluent_kafka import Consumer, TopicPartition

from ottla.model.uuid import Uuid

_ALL = -1


class Topics:
    """The topics that the rows use, by broker."""

    def __init__(self, brokers: Brokers) -> None:
        self._ids: dict[tuple[str, str], Uuid] = {}
        for broker in brokers:
            for name in ("tiny", "large", "fetched", "latency"):
                self._ids[broker.name, name] = broker.create_topic(name)

    def of(self, broker: Broker, name: str) -> Uuid:
        return self._ids[broker.name, name]


def warm_up(brokers: Brokers, topics: Topics) -> None:
    """Let the JVM compile what it will run."""
    for broker in brokers:
        frame = produce_frame(topics.of(broker, "tiny"), 0, 100)
        peers = [connect(broker.port) for _ in range(4)]
        exchange(peers, [frame] * 4, 20_000)
        exchange(peers, [fetch_frame(topics.of(broker, "tiny"), 0, 0, 1 << 16)] * 4, 5_000)
        for peer in peers:
            peer.close()


def produce_rows(brokers: Brokers, topics: Topics, scale: float) -> Iterator[Row]:
    """CPU for produce requests: tiny ones over few and many connections, pipelined, and of 16 KB."""

    def produce(
        topic: str, value_bytes: int, connections: int, requests: int, depth: int = 1, acks: int = 1
    ) -> Measure:
        def measure(broker: Broker) -> float:
            frame = produce_frame(topics.of(broker, topic), 0, value_bytes, acks=acks)
            peers = [connect(broker.port) for _ in range(connections)]
            try:
                before = broker.cpu_seconds()
                exchange(peers, [frame] * connections, requests, depth)
                return (broker.cpu_seconds() - before) * 1e6 / requests
            finally:
                for peer in peers:
                    peer.close()

        return measure

    many = int(30_000 * scale)

    def row(what: str, measure: Measure, goal: float = 0) -> Row:
        return compare(what, "us CPU", brokers, measure, goal)

    yield row("tiny produce, 1 connection", produce("tiny", 100, 1, many // 3), 4)
    yield row("tiny produce, 10 connections", produce("tiny", 100, 10, many))
    yield row("tiny produce, 100 connections", produce("tiny", 100, 100, many), 2.5)
    yield row("tiny produce, pipelined", produce("tiny", 100, 4, many, depth=16))
    yield row("16 KB produce", produce("large", 16_000, 4, many // 4), 3.5)
    yield row("tiny produce, 100 connections, acks=all", produce("tiny", 100, 100, many // 2, acks=_ALL))
    yield row("16 KB produce, acks=all", produce("large", 16_000, 4, many // 12, acks=_ALL))


def fetch_rows(brokers: Brokers, topics: Topics, scale: float) -> Iterator[Row]:
    """CPU for what is fetched, from a topic that is filled first."""
    for broker in brokers:
        frame = produce_frame(topics.of(broker, "fetched"), 0, 1_000, records=60)
        with connect(broker.port) as peer:
            exchange([peer], [frame], 2_000, depth=4)

    def fetch(max_bytes: int, gigabytes: float) -> Measure:
        def measure(broker: Broker) -> float:
            frame = fetch_frame(topics.of(broker, "fetched"), 0, 0, max_bytes)
            with connect(broker.port) as peer:
                before = broker.cpu_seconds()
                fetched = exchange([peer], [frame], int(gigabytes * 1e9 / max_bytes * scale), depth=2)
            return (broker.cpu_seconds() - before) / (fetched / 1e9)

        return measure

    yield compare("fetch, 1 MiB at a time", "s CPU/GB", brokers, fetch(1 << 20, 2), 2)
    yield compare("fetch, 64 KiB at a time", "s CPU/GB", brokers, fetch(1 << 16, 1), 1.5)


def latency_rows(brokers: Brokers, topics: Topics, scale: float) -> Iterator[Row]:
    """From the sending of a produce request to the arrival of its record at a fetch that waits."""

    def measure(broker: Broker) -> tuple[float, float]:
        times = _latencies_ms(broker, topics.of(broker, "latency"), int(2_000 * scale))
        return percentile(times, 0.5), percentile(times, 0.99)

    p50, p99 = Figure("produce to consume, p50", "ms", 3), Figure("produce to consume, p99", "ms", 6)
    yield from compare_all([p50, p99], brokers, measure)


def _latencies_ms(broker: Broker, topic: Uuid, count: int) -> list[float]:
    produce = produce_frame(topic, 0, 100)
    times = []
    with connect(broker.port) as producer, connect(broker.port) as consumer:
        round_trip(producer, produce)
        offset = _end_offset(broker, "latency")
        for _ in range(count):
            consumer.sendall(fetch_frame(topic, 0, offset, 1 << 16))
            time.sleep(0.0005)  # so that the fetch is parked when the record comes
            start = time.perf_counter()
            producer.sendall(produce)
            read_answer(consumer)
            times.append((time.perf_counter() - start) * 1e3)
            read_answer(producer)
            offset += 1
    times.sort()
    return times


def _end_offset(broker: Broker, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench"})
    try:
        offset: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
        return offset
    finally:
        consumer.close()
