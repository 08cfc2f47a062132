"""How quickly a broker is there, and what many partitions and connections cost it."""

import time
from collections.abc import Iterator
from itertools import count
from typing import Final

from benchmarks.measure import Ratio
from benchmarks.node_brokers import Broker
from benchmarks.node_compare import Brokers, Figure, Row, compare, compare_all
from benchmarks.node_load import connect
from tests.support.plain_client import PlainClient

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest

_LATEST: Final = -1


def start_rows(brokers: Brokers) -> Iterator[Row]:
    """How long until the first acknowledged record, and how much memory that took."""
    ottla, apache = brokers
    times = apache.started_s / ottla.started_s
    noise = max(broker.started_noise for broker in brokers)
    started = Row(
        "start to first record", "s", ottla.started_s, apache.started_s, Ratio(times, times, times), noise, 10
    )
    print(started, flush=True)
    memory = compare(
        "memory after the start", "MB", brokers, lambda broker: broker.resident_bytes() / 1e6, 12, blocks=1
    )
    yield started
    yield memory


def size_rows(brokers: Brokers, partitions: int, idle: int) -> Iterator[Row]:
    """Many partitions, many connections."""
    numbers = count()

    def create(broker: Broker) -> tuple[float, float]:
        start = time.perf_counter()
        # No single request may make more than 10,000 records, and a topic is one itself.
        names = [f"wide-{next(numbers)}" for _ in range(2)]
        for name in names:
            broker.create_topic(name, partitions // 2)
        answered = time.perf_counter() - start
        with PlainClient(broker.bootstrap) as client:
            while not all(_is_served(client, name, partitions // 2) for name in names):
                time.sleep(0.05)
        return answered, time.perf_counter() - start

    def list_all(broker: Broker) -> float:
        # What has just changed nobody can have the answer ready for.
        broker.create_topic(f"narrow-{next(numbers)}")
        with PlainClient(broker.bootstrap) as client:
            start = time.perf_counter()
            client.send(MetadataRequest(topics=None), 12)
            client.receive_frame()
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

    # First: a JVM that has handled many partitions has room in its heap for whatever comes next.
    yield compare(f"{idle:,} idle connections", "MB", brokers, connections, blocks=1)
    created = [
        Figure(f"create {partitions:,} partitions, until answered", "s"),
        Figure(f"create {partitions:,} partitions, until all serve", "s"),
    ]
    yield from compare_all(created, brokers, create, blocks=1, repeats=False)
    yield compare(f"list {partitions:,} partitions", "ms", brokers, list_all)


def _is_served(client: PlainClient, topic: str, partitions: int) -> bool:
    """Say whether all partitions of a topic tell where they end."""
    asked = ListOffsetsTopic(
        name=topic,
        partitions=tuple(
            ListOffsetsPartition(partition_index=number, timestamp=_LATEST) for number in range(partitions)
        ),
    )
    [answer] = client.ask(ListOffsetsRequest(replica_id=-1, topics=(asked,)), 7).topics
    return all(one.error_code is ErrorCode.NONE for one in answer.partitions)
