"""Transactions against Apache Kafka 4.3.1: how many a single producer gets through, and what each costs.

A transaction is ten small records in one partition, sent and committed by librdkafka. `acks` is all, as
transactions demand: in Ottla that means on disk, in Kafka in memory.
"""

import argparse
import time

from benchmarks.node_brokers import Broker, both_brokers
from benchmarks.node_compare import Row, compare
from confluent_kafka import Producer

RECORDS = 10
TOPIC = "transactions"


def rows(brokers: tuple[Broker, Broker], scale: float = 1.0) -> list[Row]:
    """Measure transactions per second and CPU for each."""
    transactions = int(300 * scale)
    cpu_us: dict[str, list[float]] = {}
    for broker in brokers:
        broker.create_topic(TOPIC)
        _run(broker, transactions)

    def rate(broker: Broker) -> float:
        before, started = broker.cpu_seconds(), time.perf_counter()
        _run(broker, transactions)
        elapsed = time.perf_counter() - started
        cpu_us.setdefault(broker.name, []).append((broker.cpu_seconds() - before) * 1e6 / transactions)
        return transactions / elapsed

    done = compare("transactions of 10 records, 1 producer", "1/s", brokers, rate, more_is_better=True)
    # What the last blocks have cost: a row may have been measured twice.
    last = {name: figures[-3:] for name, figures in cpu_us.items()}
    cost = compare("CPU for each of them", "us CPU", brokers, lambda broker: last[broker.name].pop(0))
    return [done, cost]


def _run(broker: Broker, transactions: int) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "benchmark", "linger.ms": 0}
    )
    producer.init_transactions(60)
    for _ in range(transactions):
        producer.begin_transaction()
        for _ in range(RECORDS):
            producer.produce(TOPIC, b"x" * 100, partition=0)
        producer.commit_transaction()


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    with both_brokers() as brokers:
        rows(brokers, parser.parse_args().scale)


if __name__ == "__main__":
    main()
