"""Changes of a table of PostgreSQL against the topic, while connector, broker and PostgreSQL are killed.

    python -m tests.connect.changes --kills 30

Each change of a row raises its version by one. So the topic has each version of each row once, in order, and
the last one is what the table has. `make crash WHAT=connectors` runs this for longer than the tests do.
"""

import argparse
import json
import random
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import psycopg
from tests.connect.conftest import FEW_PARTITIONS
from tests.connect.reading import read_topic
from tests.registry.conftest import QUICK
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode
from tests.support.postgres_server import PostgresServer

from ottla.client.consumer.record import ConsumerRecord

_ROWS = 20
_PATIENCE_S = 120.0
"""How long to wait for the next change."""
_QUICK_SESSION = ("--set", "session.timeout.ms=6000", "--set", "heartbeat.interval.ms=1000")


class _Changing(threading.Thread):
    """Inserts, updates and deletes rows, several in a transaction, and counts what was committed."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self.stopping = threading.Event()
        self.committed = 0
        self._server = server
        self._random = random.Random(7)

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                with self._server.connect() as connection:
                    while not self.stopping.is_set():
                        self._change(connection)
            except psycopg.Error:
                # The server was killed. What was not acknowledged may be there all the same.
                time.sleep(0.1)

    def _change(self, connection: "psycopg.Connection[Any]") -> None:
        with connection.transaction():
            for _ in range(self._random.randrange(1, 4)):
                row = self._random.randrange(_ROWS)
                connection.execute(
                    "INSERT INTO accounts VALUES (%s, 1, 'x') "
                    "ON CONFLICT (id) DO UPDATE SET version = accounts.version + 1",
                    (row,),
                )
        self.committed += 1
        self.stopping.wait(0.005)


def check_topic(bootstrap: str, server: PostgresServer, topic: str) -> int:
    """Wait until the topic has what the table has, and check that it has all versions once."""
    with server.connect() as connection:
        table = dict(connection.execute("SELECT id, version FROM accounts").fetchall())
    records: list[ConsumerRecord] = []
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        versions: dict[int, list[int]] = defaultdict(list)
        before = len(records)
        records = read_topic(bootstrap, topic, 1)
        if len(records) > before:
            deadline_s = time.monotonic() + _PATIENCE_S
        for record in records:
            payload = json.loads(record.value)["payload"]
            versions[payload["after"]["id"]].append(payload["after"]["version"])
            if payload["op"] == "u":
                assert payload["before"]["version"] == payload["after"]["version"] - 1
        if {row: seen[-1] for row, seen in versions.items()} == table:
            break
        last = {row: seen[-1] for row, seen in versions.items()}
        assert time.monotonic() < deadline_s, f"the table has {table}, the topic {last}"
        time.sleep(0.5)
    for row, seen in versions.items():
        # Rows that were there at the beginning begin with the version that they had.
        assert seen == list(range(seen[0], table[row] + 1)), f"row {row} has versions {seen}"
    return len(records)


def run(directory: Path, kills: int, tell: Any = print) -> int:
    """Kill what is there, one after the other, and check the topic at the end. Returns its records."""
    with PostgresServer() as server, OttlaNode(directory, QUICK) as node:
        with server.connect() as connection:
            connection.execute("CREATE TABLE accounts (id INT PRIMARY KEY, version INT NOT NULL, note TEXT)")
            connection.execute("ALTER TABLE accounts REPLICA IDENTITY FULL")
            connection.execute("INSERT INTO accounts SELECT n, 1, 'there' FROM generate_series(0, 9) AS n")
        changing = _Changing(server)
        changing.start()
        worker = ConnectProcess(node.bootstrap, *FEW_PARTITIONS, *_QUICK_SESSION)
        worker.start()
        try:
            worker.create(
                "changes",
                connector_class="io.debezium.connector.postgresql.PostgresConnector",
                database_hostname="127.0.0.1",
                database_port=str(server.port),
                database_user="postgres",
                database_dbname="postgres",
                topic_prefix="shop",
                poll_interval_ms="50",
                max_batch_size="200",
                key_converter="org.apache.kafka.connect.json.JsonConverter",
                value_converter="org.apache.kafka.connect.json.JsonConverter",
            )
            worker.wait_until_running("changes")
            for number in range(kills):
                before = changing.committed
                while changing.committed < before + 30:
                    time.sleep(0.05)
                victim = ("worker", "node", "postgres")[number % 3]
                if victim == "worker":
                    worker.kill()
                    worker.start()
                elif victim == "node":
                    node.kill()
                    node.start()
                else:
                    server.kill()
                    server.start()
                tell(f"killed {victim} after {changing.committed} transactions")
            changing.stopping.set()
            changing.join()
            records = check_topic(node.bootstrap, server, "shop.public.accounts")
            tell(
                f"{changing.committed} transactions, {records} records, {kills} kills: none lost, none twice"
            )
            return records
        finally:
            changing.stopping.set()
            changing.join()
            worker.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), parser.parse_args().kills)
