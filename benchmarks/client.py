"""Our Python client beside others: records for each CPU second of the client, produced and consumed.

    make bench WHAT=client                               every row
    python -m benchmarks.client --only "consume"    rows whose name has this in it

All talk to one Ottla node. Each measurement is a process of its own; the clients take turns, and a row shows
the median of the rounds. "ahead" says how far our client, interpreted, is ahead. It must be above 1 for
aiokafka and kafka-python. For orientation there is the distance to confluent-kafka, whose work is done in C,
and to our own client with compiled records, where `make bench WHAT=client` has built it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.measure import Noise, verdict
from confluent_kafka import Producer
from tests.support.ottla_node import OttlaNode

COMPILED = Path("target/compiled")
"""Where `make bench WHAT=client` puts our client with compiled records."""

CLIENTS = ("Ottla", "Ottla compiled", "aiokafka", "kafka-python", "confluent-kafka")
MUST_BE_BEHIND = ("aiokafka", "kafka-python")


class Row(NamedTuple):
    """One thing to do, with records of one size."""

    name: str
    what: str
    value_bytes: int
    records: int


ROWS = (
    Row("consume 100 B, many at a time", "many", 100, 200_000),
    Row("consume 1 KB, many at a time", "many", 1000, 100_000),
    Row("consume 100 B, one by one", "one", 100, 200_000),
    Row("consume 1 KB, one by one", "one", 1000, 100_000),
    Row("produce 100 B", "produce", 100, 100_000),
    Row("produce 1 KB", "produce", 1000, 50_000),
)


def measure(row: Row, client: str, bootstrap: str, topic: str) -> tuple[float, float]:
    """Return records for each CPU second, and for each second."""
    numbers = [str(row.records)] + ([str(row.value_bytes)] if row.what == "produce" else [])
    command = [
        sys.executable,
        "-m",
        "benchmarks.client_workers",
        client.removesuffix(" compiled"),
        row.what,
        bootstrap,
        topic,
        *numbers,
    ]
    # What is on this path is found before what is installed.
    environment = os.environ | ({"PYTHONPATH": str(COMPILED)} if client.endswith(" compiled") else {})
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    took = json.loads(done.stdout)
    return row.records / took["cpu_s"], row.records / took["clock_s"]


def run_row(row: Row, bootstrap: str, rounds: int) -> bool:
    """Measure all clients in turn; print the row. Returns whether we are ahead of those we must be."""
    topic = f"{row.what}-{row.value_bytes}"
    noise = Noise()
    clients = [client for client in CLIENTS if COMPILED.exists() or not client.endswith(" compiled")]
    by_client: dict[str, list[tuple[float, float]]] = {client: [] for client in clients}
    for _ in range(rounds):
        for client in clients:
            by_client[client].append(measure(row, client, bootstrap, topic))
    per_cpu_s = {client: median(cpu for cpu, _ in found) for client, found in by_client.items()}
    per_s = {client: median(clock for _, clock in found) for client, found in by_client.items()}
    print(f"\n{row.name} (noise {noise.share():.0%}, the node's own share is in it)", flush=True)
    is_ahead = True
    for client in clients:
        ahead = per_cpu_s["Ottla"] / per_cpu_s[client]
        judged = ""
        if client in MUST_BE_BEHIND:
            is_ahead = is_ahead and ahead > 1
            judged = verdict(ahead > 1)
        print(
            f"  {client:<16} {per_cpu_s[client]:>12,.0f} records/CPU-s {per_s[client]:>12,.0f} records/s"
            f"   ahead {ahead:5.2f} {judged}",
            flush=True,
        )
    return is_ahead


def fill(bootstrap: str, rows: Iterable[Row]) -> None:
    """Write what is to be consumed: batches of 16 KB, as producers make them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 16_384})
    for row in rows:
        for _ in range(row.records):
            while True:
                try:
                    producer.produce(f"{row.what}-{row.value_bytes}", b"v" * row.value_bytes)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows = [row for row in ROWS if arguments.only in row.name]
    with (
        tempfile.TemporaryDirectory(prefix="ottla-bench-") as root,
        OttlaNode(Path(root), {"num.partitions": "1"}) as node,
    ):
        fill(node.bootstrap, [row for row in rows if row.what != "produce"])
        results = [run_row(row, node.bootstrap, arguments.rounds) for row in rows]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
