"""Transactions against Apache Kafka 4.3.1: how many a single producer gets through, and what each costs.

A transaction is ten small records in one partition, sent and committed one transaction after the other: by
librdkafka, which announces partitions (version 1), and by our own client, which does not (version 2). `acks`
is all, as transactions demand. In Ottla that means on disk, in Kafka in memory; so there are rows in which
Ottla promises no more than Kafka does.
"""

import argparse
import asyncio
import time
from collections.abc import Callable
from typing import Final

from benchmarks.node_brokers import Broker, both_brokers
from benchmarks.node_compare import Brokers, Figure, Row, compare_all
from confluent_kafka import Producer
from tests.support.plain_client import PlainClient

from ottla.client.producer import Producer as OttlaProducer
from ottla.wire.config_kinds import ResourceType
from ottla.wire.coordinator_records.framing import TRANSACTION_RECORDS
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

RECORDS: Final = 10
VALUE: Final = b"x" * 100
TOPIC: Final = "transactions"
GOAL: Final = 1.5
"""How many times less CPU is asked for."""

Run = Callable[[Broker, int], None]


def rows(brokers: Brokers, scale: float = 1.0) -> list[Row]:
    """Measure transactions per second and the CPU for each, on disk and in memory."""
    transactions = int(500 * scale)
    for broker in brokers:
        broker.create_topic(TOPIC)
        for _, run in CLIENTS:
            run(broker, transactions)
    found = _rows(brokers, transactions, "on disk")
    _answer_from_memory(brokers[0])
    return found + _rows(brokers, transactions, "in memory")


def _rows(brokers: Brokers, transactions: int, promise: str) -> list[Row]:
    found = []
    for name, run in CLIENTS:

        def measure(broker: Broker, run: Run = run) -> tuple[float, float]:
            before, started = broker.cpu_seconds(), time.perf_counter()
            run(broker, transactions)
            elapsed = time.perf_counter() - started
            return transactions / elapsed, (broker.cpu_seconds() - before) * 1e6 / transactions

        what = f"transactions, {name}, {promise}"
        figures = [Figure(what, "1/s", 1, more_is_better=True), Figure("  each", "us CPU", GOAL)]
        found += compare_all(figures, brokers, measure)
    return found


def _run_librdkafka(broker: Broker, transactions: int) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "librdkafka", "linger.ms": 0}
    )
    producer.init_transactions(60)
    for _ in range(transactions):
        producer.begin_transaction()
        for _ in range(RECORDS):
            producer.produce(TOPIC, VALUE, partition=0)
        producer.commit_transaction()


def _run_ottla(broker: Broker, transactions: int) -> None:
    async def run() -> None:
        async with OttlaProducer(broker.bootstrap, transactional_id="ottla", linger_ms=0) as producer:
            for _ in range(transactions):
                async with producer.transaction():
                    for _ in range(RECORDS):
                        await producer.send(TOPIC, VALUE, partition=0)

    asyncio.run(run())


CLIENTS: Final[tuple[tuple[str, Run], ...]] = (("librdkafka", _run_librdkafka), ("ottla", _run_ottla))


def _answer_from_memory(ottla: Broker) -> None:
    """Let Ottla promise what Kafka does: a write is answered when it is in memory."""
    config = AlterableConfig(name="ottla.acks.all.sync", config_operation=0, value="false")
    resources = tuple(
        AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configs=(config,))
        for topic in (TOPIC, TRANSACTION_RECORDS.topic)
    )
    with PlainClient(ottla.bootstrap) as client:
        answer = client.ask(IncrementalAlterConfigsRequest(resources=resources, validate_only=False))
    assert all(one.error_code is ErrorCode.NONE for one in answer.responses), answer


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    with both_brokers() as brokers:
        rows(brokers, parser.parse_args().scale)


if __name__ == "__main__":
    main()
