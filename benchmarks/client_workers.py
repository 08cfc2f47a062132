"""One client doing one thing, in a process of its own: `python -m benchmarks.client_workers CLIENT WHAT …`.

It prints what it took as JSON: CPU seconds of this process, user and kernel, all threads, from the first call
to the last record, and the seconds on the clock. Imports and connecting do not count.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.client.consumer import Consumer, TopicPartition
from ottla.client.producer import Producer

MANY = 500
"""How many records are asked for at a time where a client can give many."""


class Meter:
    """Counts from `start` on."""

    def start(self) -> None:
        self._cpu_s = time.process_time()
        self._clock_s = time.perf_counter()

    def stop(self) -> dict[str, float]:
        return {"cpu_s": time.process_time() - self._cpu_s, "clock_s": time.perf_counter() - self._clock_s}


async def ottla_many(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        meter.start()
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            seen += len(await consumer.poll(60_000, MANY))


async def ottla_one(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        meter.start()
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        async for _record in consumer:
            seen += 1
            if seen == count:
                return


async def ottla_produce(meter: Meter, bootstrap: str, topic: str, count: int, value_bytes: int) -> None:
    value = b"v" * value_bytes
    async with Producer(bootstrap) as producer:
        await producer.send(topic, value)
        await producer.flush()
        meter.start()
        for _ in range(count):
            await producer.send(topic, value)
        await producer.flush()


async def _aiokafka_consumer(bootstrap: str, topic: str) -> Any:
    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Place

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([Place(topic, 0)])
    return consumer


async def aiokafka_many(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    consumer = await _aiokafka_consumer(bootstrap, topic)
    meter.start()
    seen = 0
    while seen < count:
        answer = await consumer.getmany(timeout_ms=60_000, max_records=MANY)
        seen += sum(map(len, answer.values()))
    await consumer.stop()


async def aiokafka_one(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    consumer = await _aiokafka_consumer(bootstrap, topic)
    meter.start()
    seen = 0
    async for _record in consumer:
        seen += 1
        if seen == count:
            break
    await consumer.stop()


async def aiokafka_produce(meter: Meter, bootstrap: str, topic: str, count: int, value_bytes: int) -> None:
    from aiokafka import AIOKafkaProducer

    value = b"v" * value_bytes
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, acks="all", linger_ms=5)
    await producer.start()
    await producer.send_and_wait(topic, value)
    meter.start()
    for _ in range(count):
        await producer.send(topic, value)
    await producer.flush()
    await producer.stop()


def _kafka_python_consumer(bootstrap: str, topic: str) -> Any:
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Place

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
    consumer.assign([Place(topic, 0)])
    return consumer


async def kafka_python_many(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    consumer = _kafka_python_consumer(bootstrap, topic)
    meter.start()
    seen = 0
    while seen < count:
        answer = consumer.poll(timeout_ms=60_000, max_records=MANY)
        seen += sum(map(len, answer.values()))
    consumer.close()


async def kafka_python_one(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    consumer = _kafka_python_consumer(bootstrap, topic)
    meter.start()
    for seen, _record in enumerate(consumer, 1):
        if seen == count:
            break
    consumer.close()


async def kafka_python_produce(
    meter: Meter, bootstrap: str, topic: str, count: int, value_bytes: int
) -> None:
    from kafka import KafkaProducer

    value = b"v" * value_bytes
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
    producer.send(topic, value).get(60)
    meter.start()
    for _ in range(count):
        producer.send(topic, value)
    producer.flush()
    producer.close()


def _confluent_consumer(bootstrap: str, topic: str) -> Any:
    from confluent_kafka import Consumer as ForeignConsumer
    from confluent_kafka import TopicPartition as Place

    settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "check.crcs": True}
    # Its default is a second, in which it fetches nothing: the row would say how long it slept.
    consumer = ForeignConsumer({**settings, "fetch.queue.backoff.ms": 5})
    consumer.assign([Place(topic, 0, 0)])
    return consumer


async def confluent_many(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    consumer = _confluent_consumer(bootstrap, topic)
    meter.start()
    seen = 0
    while seen < count:
        for message in consumer.consume(MANY, 60):
            # As much as the others give without being asked.
            _ = message.offset(), message.key(), message.value()
            seen += 1
    consumer.close()


async def confluent_one(meter: Meter, bootstrap: str, topic: str, count: int) -> None:
    consumer = _confluent_consumer(bootstrap, topic)
    meter.start()
    seen = 0
    while seen < count:
        message = consumer.poll(60)
        _ = message.offset(), message.key(), message.value()
        seen += 1
    consumer.close()


async def confluent_produce(meter: Meter, bootstrap: str, topic: str, count: int, value_bytes: int) -> None:
    from confluent_kafka import Producer as ForeignProducer

    value = b"v" * value_bytes
    producer = ForeignProducer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    producer.produce(topic, value)
    producer.flush()
    meter.start()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()


WORKERS: dict[tuple[str, str], Callable[..., Awaitable[None]]] = {
    ("Ottla", "many"): ottla_many,
    ("Ottla", "one"): ottla_one,
    ("Ottla", "produce"): ottla_produce,
    ("aiokafka", "many"): aiokafka_many,
    ("aiokafka", "one"): aiokafka_one,
    ("aiokafka", "produce"): aiokafka_produce,
    ("kafka-python", "many"): kafka_python_many,
    ("kafka-python", "one"): kafka_python_one,
    ("kafka-python", "produce"): kafka_python_produce,
    ("confluent-kafka", "many"): confluent_many,
    ("confluent-kafka", "one"): confluent_one,
    ("confluent-kafka", "produce"): confluent_produce,
}


def main() -> None:
    client, what, bootstrap, topic, *numbers = sys.argv[1:]
    meter = Meter()

    async def work() -> dict[str, float]:
        await WORKERS[client, what](meter, bootstrap, topic, *map(int, numbers))
        return meter.stop()

    print(json.dumps(asyncio.run(work())))


if __name__ == "__main__":
    main()
