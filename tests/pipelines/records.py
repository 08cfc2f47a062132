"""Records in and out of a node for tests of pipelines, by a client that nobody here wrote."""

import json
import uuid
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

Message = tuple[bytes | None, bytes | None]


def create_topic(
    bootstrap: str, name: str, partitions: int = 3, config: dict[str, str] | None = None
) -> None:
    """Create a topic and wait for it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(30)


def produce(bootstrap: str, topic: str, messages: Iterable[Message], **more: Any) -> None:
    """Write records and wait until all of them are acknowledged."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    )
    for key, value in messages:
        producer.produce(topic, value, key, **more)
        producer.poll(0)
    assert producer.flush(60) == 0


def produce_json(bootstrap: str, topic: str, rows: Iterable[dict[str, Any]], key: str | None = None) -> None:
    """Write rows as JSON."""
    produce(
        bootstrap,
        topic,
        ((None if key is None else str(row[key]).encode(), json.dumps(row).encode()) for row in rows),
    )


def committed(bootstrap: str, topic: str) -> list[Any]:
    """Return all messages that a careful reader sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4()}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        waiting = set(partitions)
        messages = []
        while waiting:
            message = consumer.poll(30)
            assert message is not None, f"{topic} gave nothing for half a minute"
            if message.error() is None:
                messages.append(message)
            else:
                waiting.discard(message.partition())
        return messages
    finally:
        consumer.close()


def committed_values(bootstrap: str, topic: str) -> list[bytes]:
    """Return the values of all messages that a careful reader sees."""
    return [message.value() for message in committed(bootstrap, topic)]


def committed_json(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """Return the same, read as JSON."""
    return [json.loads(value) for value in committed_values(bootstrap, topic)]
