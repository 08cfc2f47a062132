"""Programs that read a topic and write another, exactly once: one for each client that people use."""

import asyncio
import contextlib
import subprocess
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.java.jars import java_classpath, java_command

from ottla.client.consumer import Consumer as OttlaConsumer
from ottla.client.errors import ClientError
from ottla.client.producer import Producer as OttlaProducer
from ottla.model.ids import TopicPartition as OttlaTopicPartition

BATCH = 20

IsOver = Callable[[], bool]


def copy_with_confluent(bootstrap: str, partition: int, is_over: IsOver) -> None:
    """Copy with librdkafka, by one instance after the other."""
    while not is_over():
        with contextlib.suppress(KafkaException):
            _copy_with_confluent(bootstrap, partition, is_over)


def _copy_with_confluent(bootstrap: str, partition: int, is_over: IsOver) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"confluent-{partition}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"confluent-{partition}",
                "transaction.timeout.ms": 10_000,
                "log_level": 0,
            }
        )
        producer.init_transactions(20)
        where = TopicPartition("in", partition)
        (committed,) = consumer.committed([where], 20)
        consumer.assign([TopicPartition("in", partition, max(committed.offset, 0))])
        while not is_over():
            messages = [one for one in consumer.consume(BATCH, 0.2) if one.error() is None]
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                producer.produce("out", message.value(), partition=partition)
            producer.send_offsets_to_transaction(
                consumer.position([where]), consumer.consumer_group_metadata(), 10
            )
            producer.commit_transaction(10)
    finally:
        consumer.close()


def copy_with_aiokafka(bootstrap: str, partition: int, is_over: IsOver) -> None:
    """Copy with aiokafka, by one instance after the other."""

    async def copy() -> None:
        while not is_over():
            with contextlib.suppress(AioKafkaError, OSError, asyncio.TimeoutError):
                async with asyncio.timeout(30):
                    await _copy_with_aiokafka(bootstrap, partition, is_over)

    asyncio.run(copy())


async def _copy_with_aiokafka(bootstrap: str, partition: int, is_over: IsOver) -> None:
    group = f"aiokafka-{partition}"
    where = AioTopicPartition("in", partition)
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap}
    consumer = AIOKafkaConsumer(
        group_id=group, enable_auto_commit=False, isolation_level="read_committed", **settings
    )
    producer = AIOKafkaProducer(transactional_id=group, transaction_timeout_ms=10_000, **settings)
    try:
        await consumer.start()
        await producer.start()
        consumer.assign([where])
        committed = await consumer.committed(where)
        consumer.seek(where, committed or 0)
        while not is_over():
            batches = await consumer.getmany(timeout_ms=200, max_records=BATCH)
            for messages in batches.values():
                async with producer.transaction():
                    for message in messages:
                        await producer.send("out", message.value, partition=partition)
                    await producer.send_offsets_to_transaction({where: messages[-1].offset + 1}, group)
    finally:
        with contextlib.suppress(Exception):
            await producer.stop()
        await consumer.stop()


def copy_with_ottla(bootstrap: str, partition: int, is_over: IsOver) -> None:
    """Copy with our own client, by one instance after the other."""

    async def copy() -> None:
        while not is_over():
            with contextlib.suppress(ClientError, asyncio.TimeoutError):
                async with asyncio.timeout(30):
                    await _copy_with_ottla(bootstrap, partition, is_over)

    asyncio.run(copy())


async def _copy_with_ottla(bootstrap: str, partition: int, is_over: IsOver) -> None:
    group, where = f"ottla-{partition}", OttlaTopicPartition("in", partition)
    settings: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest"}
    async with (
        OttlaProducer(bootstrap, transactional_id=group, transaction_timeout_ms=10_000) as producer,
        OttlaConsumer(
            bootstrap, isolation_level="read_committed", enable_auto_commit=False, **settings
        ) as consumer,
    ):
        consumer.assign([where])
        while not is_over():
            records = await consumer.poll(timeout_ms=200, max_records=BATCH)
            if records:
                async with producer.transaction():
                    for record in records:
                        await producer.send("out", record.value, partition=partition)
                    await producer.send_offsets_to_transaction(
                        consumer.positions(), consumer.group_metadata()
                    )


def copy_with_java(bootstrap: str, partition: int, is_over: IsOver) -> None:
    """Copy with Apache Kafka's own copier, started again as often as it gives up."""
    command = java_command(
        java_classpath(),
        "org.apache.kafka.tools.TransactionalMessageCopier",
        "--broker-list", bootstrap,
        "--input-topic", "in",
        "--input-partition", str(partition),
        "--output-topic", "out",
        "--transactional-id", f"java-{partition}",
        "--consumer-group", f"java-{partition}",
        "--transaction-size", str(BATCH),
        "--transaction-timeout", "10000",
        "--enable-random-aborts",
    )  # fmt: skip
    while not is_over():
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not is_over():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        process.kill()
        process.wait()
