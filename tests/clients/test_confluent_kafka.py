"""librdkafka, by way of confluent-kafka: produces, reads what was assigned, looks up offsets."""

from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.ottla_node import OttlaNode

RECORDS = 2000


def read_all(bootstrap: str, topic: str, partitions: int, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        messages: list[Any] = []
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), 30)
            assert batch, f"nothing came after {len(messages)} messages"
            for message in batch:
                assert message.error() is None, message.error()
            messages += batch
        return messages
    finally:
        consumer.close()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_what_is_produced_is_read(ottla_node: OttlaNode, compression: str, idempotent: bool) -> None:
    topic = f"rdkafka-{compression}-{idempotent}"
    errors: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": ottla_node.bootstrap,
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "linger.ms": 1,
        }
    )
    for number in range(RECORDS):
        producer.produce(
            topic,
            key=b"%d" % (number % 7),
            value=b"value %d" % number,
            headers=[("number", b"%d" % number)],
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert errors == []

    messages = read_all(ottla_node.bootstrap, topic, 3, RECORDS)

    assert sorted(int(message.value().split()[1]) for message in messages) == list(range(RECORDS))
    for message in messages:
        assert message.headers() == [("number", message.value().split()[1])]
    for key in range(7):
        numbers = [int(m.value().split()[1]) for m in messages if m.key() == b"%d" % key]
        assert numbers == sorted(numbers), "records of one key keep their order"


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_kind_of_acknowledgement_works(ottla_node: OttlaNode, acks: str) -> None:
    topic = f"rdkafka-acks-{acks}"
    admin = AdminClient({"bootstrap.servers": ottla_node.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": ottla_node.bootstrap, "acks": acks})
    for number in range(100):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(60) == 0
    assert len(read_all(ottla_node.bootstrap, topic, 1, 100)) == 100


def test_offsets_are_found_by_time(ottla_node: OttlaNode) -> None:
    topic = "rdkafka-times"
    admin = AdminClient({"bootstrap.servers": ottla_node.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": ottla_node.bootstrap})
    for number in range(10):
        producer.produce(topic, b"v", timestamp=1_000_000 + number * 1000)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": ottla_node.bootstrap, "group.id": "unused"})
    try:
        found = consumer.offsets_for_times([TopicPartition(topic, 0, 1_004_500)], 30)
        assert found[0].offset == 5
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 30) == (0, 10)
    finally:
        consumer.close()
