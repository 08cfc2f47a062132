"""Our own producer, judged by librdkafka's consumer, alike against Ottla and against Apache Kafka."""

import asyncio
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.clients.served_topics import serve_topic
from tests.ottla_node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.errors import BrokerError, NoBrokerReached
from ottla.client.journey import Stage, Step
from ottla.client.producer import Producer
from ottla.client.producer.transactions import Fenced


@pytest.fixture
def topic() -> str:
    """A name that no other test uses: the brokers are shared, and make topics of one partition on demand."""
    return f"producer-{uuid.uuid4().hex[:12]}"


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
def test_records_arrive_in_order_under_every_codec(bootstrap: str, topic: str, codec: str) -> None:
    async def produce() -> None:
        async with Producer(bootstrap, compression_type=codec, batch_size=2000) as producer:
            sent = [await producer.send(topic, b"%d" % number, key=b"k") for number in range(500)]
            assert [(await record).offset for record in sent] == list(range(500))

    asyncio.run(produce())
    assert _read(bootstrap, topic, 500) == [(b"k", b"%d" % number) for number in range(500)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_arrive_whatever_the_acks(bootstrap: str, topic: str, acks: str) -> None:
    async def produce() -> None:
        async with Producer(bootstrap, acks=acks) as producer:
            metadata = await (await producer.send(topic, b"first"))
            assert metadata.offset == (-1 if acks == "0" else 0)
            await producer.send(topic, b"second", headers=[("trace", b"7"), ("none", None)])

    asyncio.run(produce())
    assert _read(bootstrap, topic, 2) == [(None, b"first"), (None, b"second")]


def test_a_batch_that_is_too_large_for_the_broker_is_split(bootstrap: str, topic: str) -> None:
    async def produce() -> None:
        async with Admin(bootstrap) as admin:
            await serve_topic(admin, topic, partitions=1, configs={"max.message.bytes": "1000"})
        async with Producer(bootstrap, batch_size=20_000) as producer:
            sent = [await producer.send(topic, b"%03d" % number * 30) for number in range(50)]
            assert [(await record).offset for record in sent] == list(range(50))
            alone = await producer.send(topic, b"x" * 2000)
            with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
                await alone

    asyncio.run(produce())
    assert [value for _, value in _read(bootstrap, topic, 50)] == [b"%03d" % n * 30 for n in range(50)]


def test_only_committed_transactions_are_seen(bootstrap: str, topic: str) -> None:
    async def produce() -> None:
        async with Producer(bootstrap, transactional_id=topic) as producer:
            async with producer.transaction():
                await producer.send(topic, b"first")
            producer.begin_transaction()
            await (await producer.send(topic, b"aborted"))
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, b"second")

    asyncio.run(produce())
    assert [value for _, value in _read(bootstrap, topic, 2)] == [b"first", b"second"]


def test_a_record_is_sent_and_waited_for(bootstrap: str, topic: str) -> None:
    async def produce() -> None:
        async with Producer(bootstrap) as producer:
            stored = await producer.send_and_wait(
                topic, b"v", key=b"k", partition=0, timestamp_ms=1000, headers=[("h", b"1")]
            )
            assert stored == (topic, 0, 0, 1000)
            with pytest.raises(ValueError, match="has no partition 9"):
                await producer.send_and_wait(topic, b"v", partition=9)

    asyncio.run(produce())
    assert _read(bootstrap, topic, 1) == [(b"k", b"v")]


def test_an_abort_that_was_asked_for_is_no_news(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def produce() -> None:
        async with Producer(bootstrap, transactional_id=topic, linger_ms=60_000) as producer:
            producer.begin_transaction()
            sent = await producer.send(topic, b"never sent")
            await producer.abort_transaction()
            with pytest.raises(BrokerError, match="the transaction was aborted"):
                await sent

    asyncio.run(produce())
    assert [record.message for record in caplog.records if record.levelname != "DEBUG"] == []


def test_a_second_producer_of_the_same_name_fences_the_first(bootstrap: str, topic: str) -> None:
    async def produce() -> None:
        async with Producer(bootstrap, transactional_id=topic) as old:
            async with old.transaction():
                await old.send(topic, b"old")
            async with Producer(bootstrap, transactional_id=topic) as new:
                with pytest.raises(Fenced, match="another producer"):
                    async with old.transaction():
                        await old.send(topic, b"zombie")
                async with new.transaction():
                    await new.send(topic, b"new")

    asyncio.run(produce())
    assert [value for _, value in _read(bootstrap, topic, 2)] == [b"old", b"new"]


def test_nothing_is_lost_doubled_or_reordered_when_the_broker_restarts(tmp_path: Path) -> None:
    async def produce(node: OttlaNode) -> None:
        async with Producer(node.bootstrap, batch_size=500, linger_ms=0) as producer:
            for number in range(1500):
                await producer.send("t", b"%d" % number, key=b"k")
                if number % 500 == 250:
                    await asyncio.to_thread(node.kill)
                    await asyncio.to_thread(node.start)
            await producer.flush()

    with OttlaNode(tmp_path, {"num.partitions": "1"}) as node:
        asyncio.run(produce(node))
        assert [value for _, value in _read(node.bootstrap, "t", 1500)] == [b"%d" % n for n in range(1500)]


def test_a_listener_hears_every_stage(bootstrap: str, topic: str) -> None:
    steps: list[Step] = []

    async def produce() -> None:
        async with Producer(bootstrap, journey=steps.append) as producer:
            await (await producer.send(topic, b"v", key=b"k"))

    asyncio.run(produce())
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

    with pytest.raises(
        NoBrokerReached, match=r"no broker answers at 127\.0\.0\.1:1; check that it is running"
    ):
        asyncio.run(produce())


def test_ignored_keys_spread_over_partitions(bootstrap: str, topic: str) -> None:
    async def produce() -> set[int]:
        async with Admin(bootstrap) as admin:
            await serve_topic(admin, topic, partitions=3)
        async with Producer(bootstrap, partitioner_ignore_keys=True, batch_size=200) as producer:
            sent = [await producer.send(topic, b"x" * 100, key=b"the same") for _ in range(200)]
            return {(await record).partition for record in sent}

    assert asyncio.run(produce()) == {0, 1, 2}
