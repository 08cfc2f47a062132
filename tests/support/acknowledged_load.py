"""Producing load that remembers what was acknowledged, through any number of crashes of the broker.

An idempotent producer (librdkafka) writes numbered records as fast as a bound on what is under way lets it.
Afterwards every acknowledged record must be at the offset that was told, and no number may be there twice.

If a batch fails and a later one succeeds, librdkafka concludes that the first one was written too, and
reports it as delivered without an offset. Such a record must be somewhere in its partition.
"""

import threading
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer
from tests.support.data_plane import fetch_all
from tests.support.plain_client import PlainClient

_UNDER_WAY_MAX = 3000
_SETTINGS = {
    "enable.idempotence": True,
    "linger.ms": 1,
    "message.timeout.ms": 600_000,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 20,
    "log_level": 2,
}
"""A producer that goes on soon after a crash, and says nothing of lost connections."""


class AcknowledgedLoad:
    """A producer that writes to all partitions of a topic until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.implied: list[tuple[int, bytes]] = []
        self.failures: list[Any] = []
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, **_SETTINGS})
        self._is_over = threading.Event()
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def wait_for(self, count: int, timeout_s: float = 120) -> None:
        """Wait until `count` more records were acknowledged."""
        goal = len(self.acknowledged) + count
        with self._more:
            assert self._more.wait_for(lambda: len(self.acknowledged) >= goal, timeout_s), "nothing goes on"

    def describe(self) -> str:
        """Say how far it is, and what failed last."""
        state = "goes on" if self._thread.is_alive() else "has stopped"
        return (
            f"The load {state}: {len(self.acknowledged)} records were acknowledged, {len(self._producer)} "
            f"are under way, {len(self.failures)} failed {self.failures[-1:]}."
        )

    def finish(self) -> None:
        """Stop writing, and wait for what is under way."""
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(120) == 0

    def give_up(self) -> None:
        """Stop writing, and forget what is under way."""
        self._is_over.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(10)

    def check(self, bootstrap: str) -> None:
        """See that nothing that was acknowledged is lost, and nothing is there twice."""
        with PlainClient(bootstrap) as client:
            kept = [fetch_all(client, self._topic, number) for number in range(self._partitions)]
        for partition, values in enumerate(kept):
            assert len(set(values)) == len(values), f"partition {partition} has a record twice"
        self.check_found(
            {
                (number, offset): value
                for number, values in enumerate(kept)
                for offset, value in enumerate(values)
            }
        )

    def check_found(self, found: Mapping[tuple[int, int], bytes | None]) -> None:
        """See that what was acknowledged is among records by partition and offset."""
        lost = {where: value for where, value in self.acknowledged.items() if found.get(where) != value}
        assert lost == {}, f"{len(lost)} of {len(self.acknowledged)} are not where they were said to be"
        assert {(partition, value) for (partition, _), value in found.items()}.issuperset(self.implied)

    def _write(self) -> None:
        number = 0
        while not self._is_over.is_set():
            while len(self._producer) < _UNDER_WAY_MAX:
                partition = number % self._partitions
                self._producer.produce(
                    self._topic, b"%d" % number, partition=partition, on_delivery=self._delivered
                )
                number += 1
            self._producer.poll(0.02)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(error)
            return
        if message.offset() is None:
            self.implied.append((message.partition(), message.value()))
            return
        with self._more:
            self.acknowledged[message.partition(), message.offset()] = message.value()
            self._more.notify_all()
