"""aiokafka in a group: members share partitions, commit, and go on after a restart of the node."""

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from tests.support.ottla_node import OttlaNode

RECORDS = 300


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    settings = {"group.initial.rebalance.delay.ms": "0", "num.partitions": "4"}
    with OttlaNode(tmp_path_factory.mktemp("groups"), settings) as node:
        yield node


async def produce(bootstrap: str, topic: str, numbers: range) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            await producer.send(topic, b"%d" % number)
        await producer.flush()


def test_aiokafka_members_share_partitions_and_go_on_where_the_group_was(node: OttlaNode) -> None:
    topic = "aiokafka-group"

    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic, bootstrap_servers=node.bootstrap, group_id=topic, auto_offset_reset="earliest",
            enable_auto_commit=False, session_timeout_ms=6000, heartbeat_interval_ms=200,
        )  # fmt: skip

    async def consume(consumer: AIOKafkaConsumer, values: list[int], enough: int) -> None:
        while len(set(values)) < enough:
            for messages in (await consumer.getmany(timeout_ms=200)).values():
                values.extend(int(message.value) for message in messages)
            await consumer.commit()

    async def together() -> None:
        await produce(node.bootstrap, topic, range(RECORDS))
        first, second = member(), member()
        await first.start()
        await second.start()
        while not (first.assignment() and second.assignment()):
            # The first one joins again as soon as it polls.
            await asyncio.gather(first.getmany(timeout_ms=50), second.getmany(timeout_ms=50))
        owned = [first.assignment(), second.assignment()]
        assert owned[0] | owned[1] == {TopicPartition(topic, number) for number in range(4)}
        assert not owned[0] & owned[1]
        await asyncio.gather(first.seek_to_beginning(), second.seek_to_beginning())
        everything: list[int] = []
        await asyncio.gather(consume(first, everything, RECORDS), consume(second, everything, RECORDS))
        assert sorted(everything) == list(range(RECORDS)), "each record came to one of them, once"
        await first.stop()
        await second.stop()

    async def again() -> None:
        await produce(node.bootstrap, topic, range(RECORDS, RECORDS + 50))
        consumer = member()
        await consumer.start()
        values: list[int] = []
        await consume(consumer, values, 50)
        assert sorted(values) == list(range(RECORDS, RECORDS + 50)), "what was committed does not come again"
        await consumer.stop()

    asyncio.run(asyncio.wait_for(together(), 60))
    node.stop()
    node.start()
    asyncio.run(asyncio.wait_for(again(), 60))
