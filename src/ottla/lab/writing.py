"""How the lab writes records: with confluent-kafka, with our own client, or with Java's."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from ottla.lab.clients import CONFLUENT, JAVA, Clients
from ottla.lab.java import Line

_AS_JAVA: Final = "murmur2_random"
"""What librdkafka calls the partitioner that our client and Java's have anyway."""


class Unacknowledged(Exception):
    """Records were not acknowledged in time."""


def write(
    clients: Clients, kind: str, settings: dict[str, str], topic: str, lines: Sequence[Line], timeout_s: float
) -> None:
    """Write records with a producer of one kind, and wait until they are acknowledged."""
    if kind == CONFLUENT:
        _write_confluent(settings, topic, lines, timeout_s)
        return
    settings = {key: value for key, value in settings.items() if value != _AS_JAVA}
    if kind == JAVA:
        clients.the_java.write(settings, topic, lines, timeout_s)
    else:
        _write_ours(settings, topic, lines)


def _write_confluent(settings: dict[str, str], topic: str, lines: Sequence[Line], timeout_s: float) -> None:
    from confluent_kafka import Producer

    producer = Producer(settings)
    for line in lines:
        producer.produce(
            topic,
            line.value,
            line.key,
            partition=-1 if line.partition is None else line.partition,
            timestamp=0 if line.timestamp_ms is None else line.timestamp_ms,
        )
    left = producer.flush(timeout_s)
    if left:
        raise Unacknowledged(f"{left} records were not acknowledged")


def _write_ours(settings: dict[str, str], topic: str, lines: Sequence[Line]) -> None:
    from ottla.client.sync import Producer

    with Producer(properties=settings) as producer:
        for line in lines:
            producer.send(
                topic, line.value, key=line.key, partition=line.partition, timestamp_ms=line.timestamp_ms
            )
        producer.flush()


def write_steadily(
    settings: dict[str, str],
    topic: str,
    per_second: float,
    keys: Callable[[int], bytes | None],
    partition: Callable[[int], int | None],
    stop: threading.Event,
    salt: int,
) -> None:
    """Write this many records a second with our own client, until there is an order to stop."""
    from ottla.client.sync import Producer

    with Producer(properties=settings) as producer:
        number = 0
        started = time.monotonic()
        while not stop.is_set():
            behind = int((time.monotonic() - started) * per_second) - number
            for _ in range(max(behind, 0)):
                value = f"{salt:08x}-{number:08}".encode()
                producer.send(topic, value, key=keys(number), partition=partition(number))
                number += 1
            stop.wait(0.05)
