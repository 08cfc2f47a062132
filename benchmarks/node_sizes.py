"""How quickly a broker is there, and what many partitions and connections cost it."""

import time
from collections.abc import Iterator
from itertools import count

from benchmarks.measure import Ratio
from benchmarks.node_brokers import Broker
from benchmarks.node_compare import Brokers, Row, compare
from benchmarks.node_load import connect
from tests.plain_client import PlainClient

from ottla.wire.messages.metadata import MetadataRequest


def start_rows(brokers: Brokers) -> Iterator[Row]:
    """How long until the first acknowledged record, and how much memory that took."""
    ottla, apache = brokers
    times = apache.started_s / ottla.started_s
    noise = max(broker.started_noise for broker in brokers)
    started = Row(
        "start to first record", "s", ottla.started_s, apache.started_s, Ratio(times, times, times), noise, 40
    )
    print(started, flush=True)
    memory = compare(
        "memory after the start", "MB", brokers, lambda broker: broker.resident_bytes() / 1e6, 20, blocks=1
    )
    yield started
    yield memory


def size_rows(brokers: Brokers, partitions: int, idle: int) -> Iterator[Row]:
    """Many partitions, many connections."""
    numbers = count()

    def create(broker: Broker) -> float:
        start = time.perf_counter()
        # No single request may make more than 10,000 records, and a topic is one itself.
        for _ in range(2):
            broker.create_topic(f"wide-{next(numbers)}", partitions // 2)
        return time.perf_counter() - start

    def list_all(broker: Broker) -> float:
        with PlainClient(broker.bootstrap) as client:
            start = time.perf_counter()
            client.ask(MetadataRequest(topics=None), 12)
            return (time.perf_counter() - start) * 1e3

    def connections(broker: Broker) -> float:
        before = broker.resident_bytes()
        peers = [connect(broker.port) for _ in range(idle)]
        with PlainClient(broker.bootstrap) as client:
            client.ask(MetadataRequest(topics=()), 12)
        grown = broker.resident_bytes() - before
        for peer in peers:
            peer.close()
        time.sleep(1)
        return max(grown, 4096) / 1e6

    yield compare(f"create {partitions:,} partitions", "s", brokers, create, blocks=1)
    yield compare(f"list {partitions:,} partitions", "ms", brokers, list_all)
    yield compare(f"{idle:,} idle connections", "MB", brokers, connections, blocks=1)
