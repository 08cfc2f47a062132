"""aiokafka: produces, reads what was assigned, waits for records to come."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from tests.support.ottla_node import OttlaNode


def test_what_is_produced_is_read(ottla_node: OttlaNode) -> None:
    asyncio.run(_produce_and_read(ottla_node.bootstrap))


async def _produce_and_read(bootstrap: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await producer.start()
    await consumer.start()
    try:
        partition = TopicPartition("aiokafka", 0)
        for number in range(100):
            sent = await producer.send_and_wait("aiokafka", b"%d" % number, partition=0)
            assert sent.offset == number
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        read = [await consumer.getone() for _ in range(100)]
        assert [record.value for record in read] == [b"%d" % number for number in range(100)]
        assert await consumer.end_offsets([partition]) == {partition: 100}

        waiting = asyncio.create_task(consumer.getone())
        await producer.send_and_wait("aiokafka", b"late", partition=0)
        assert (await waiting).value == b"late"
    finally:
        await consumer.stop()
        await producer.stop()
