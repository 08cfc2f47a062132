"""Our own producer, judged by librdkafka's consumer."""

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.ottla_node import OttlaNode

from ottla.client.errors import NoBrokerReached
from ottla.client.journey import Stage, Step
from ottla.client.producer import Producer
from ottla.client.producer.transactions import Fenced

_SETTINGS = {
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


def _read(bootstrap: str, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "judge", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes | None, bytes | None]] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=30)
        assert messages, f"{len(found)} of {count} records came"
        for message in messages:
            assert message.error() is None, message.error()
            found.append((message.key(), message.value()))
    consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive_in_order_under_every_codec(tmp_path: Path, codec: str) -> None:
    async def produce(bootstrap: str) -> None:
        async with Producer(bootstrap, compression_type=codec, batch_size=2000) as producer:
            sent = [await producer.send("t", b"%d" % number, key=b"k") for number in range(500)]
            assert [(await record).offset for record in sent] == list(range(500))

    with OttlaNode(tmp_path, _SETTINGS) as node:
        asyncio.run(produce(node.bootstrap))
        assert _read(node.bootstrap, "t", 500) == [(b"k", b"%d" % number) for number in range(500)]


def test_only_committed_transactions_are_seen(tmp_path: Path) -> None:
    async def produce(bootstrap: str) -> None:
        async with Producer(bootstrap, transactional_id="tx") as producer:
            async with producer.transaction():
                await producer.send("t", b"first")
            producer.begin_transaction()
            await (await producer.send("t", b"aborted"))
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send("t", b"second")

    with OttlaNode(tmp_path, _SETTINGS) as node:
        asyncio.run(produce(node.bootstrap))
        assert [value for _, value in _read(node.bootstrap, "t", 2)] == [b"first", b"second"]


def test_a_second_producer_of_the_same_name_fences_the_first(tmp_path: Path) -> None:
    async def produce(bootstrap: str) -> None:
        async with Producer(bootstrap, transactional_id="tx") as old:
            async with old.transaction():
                await old.send("t", b"old")
            async with Producer(bootstrap, transactional_id="tx") as new:
                with pytest.raises(Fenced, match="another producer"):
                    async with old.transaction():
                        await old.send("t", b"zombie")
                async with new.transaction():
                    await new.send("t", b"new")

    with OttlaNode(tmp_path, _SETTINGS) as node:
        asyncio.run(produce(node.bootstrap))
        assert [value for _, value in _read(node.bootstrap, "t", 2)] == [b"old", b"new"]


def test_nothing_is_lost_doubled_or_reordered_when_the_broker_restarts(tmp_path: Path) -> None:
    async def produce(node: OttlaNode) -> None:
        async with Producer(node.bootstrap, batch_size=500, linger_ms=0) as producer:
            for number in range(1500):
                await producer.send("t", b"%d" % number, key=b"k")
                if number % 500 == 250:
                    await asyncio.to_thread(node.kill)
                    await asyncio.to_thread(node.start)
            await producer.flush()

    with OttlaNode(tmp_path, _SETTINGS) as node:
        asyncio.run(produce(node))
        assert [value for _, value in _read(node.bootstrap, "t", 1500)] == [b"%d" % n for n in range(1500)]


def test_a_listener_hears_every_stage(tmp_path: Path) -> None:
    steps: list[Step] = []

    async def produce(bootstrap: str) -> None:
        async with Producer(bootstrap, journey=steps.append) as producer:
            await (await producer.send("t", b"v", key=b"k"))

    with OttlaNode(tmp_path, _SETTINGS) as node:
        asyncio.run(produce(node.bootstrap))
    assert [step.stage for step in steps] == [
        Stage.SERIALIZED,
        Stage.PARTITION_CHOSEN,
        Stage.BATCHED,
        Stage.SENT,
        Stage.ACKNOWLEDGED,
    ]
    assert steps[1].detail == {"reason": "hash of the key"}


def test_a_wrong_address_is_told_in_one_sentence() -> None:
    async def produce() -> None:
        async with Producer("127.0.0.1:1"):
            pass

    with pytest.raises(NoBrokerReached, match=r"no broker answers at 127\.0\.0\.1:1; is it running"):
        asyncio.run(produce())
