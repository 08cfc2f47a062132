"""Our own share consumer, on Ottla and on Apache Kafka alike."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from tests.clients.served_topics import make_topic, until

from ottla.client import sync
from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.client.serializers import from_json
from ottla.client.share import (
    AcknowledgeFailed,
    AcknowledgeType,
    NotHeld,
    ShareConsumer,
    ShareRecord,
    UnreadableRecord,
)
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ResourceType

EXPLICIT = {"share_acknowledgement_mode": "explicit"}


def _run(body: Any) -> None:
    asyncio.run(asyncio.wait_for(body, 120))


async def _queue(bootstrap: str, partitions: int = 1, **configs: str) -> str:
    """Make a topic, and a share group of the same name that reads it from its beginning."""
    name = f"queue-{uuid4()}"
    await asyncio.to_thread(make_topic, bootstrap, name, partitions)
    async with Admin(bootstrap) as admin:
        values = {key.replace("_", "."): value for key, value in configs.items()}
        values["share.auto.offset.reset"] = "earliest"
        await admin.configs.alter(ResourceType.GROUP, name, values)
    return name


async def _fill(bootstrap: str, topic: str, values: Iterable[bytes], **options: Any) -> None:
    async with Producer(bootstrap, **options) as producer:
        for value in values:
            await producer.send(topic, value)


@asynccontextmanager
async def _open(bootstrap: str, queue: str, **settings: Any) -> AsyncIterator[ShareConsumer]:
    async with ShareConsumer(bootstrap, group_id=queue, **settings) as consumer:
        consumer.subscribe([queue])
        yield consumer


async def _some(consumer: ShareConsumer, **how: Any) -> list[ShareRecord]:
    while not (records := await consumer.poll(1000, **how)):
        pass
    return records


async def _nothing_comes(consumer: ShareConsumer) -> bool:
    return not await consumer.poll(1500)


async def _lag(admin: Admin, queue: str) -> int | None:
    return (await admin.share_groups.offsets(queue))[TopicPartition(queue, 0)].lag


def test_what_was_polled_counts_as_done_when_more_is_polled(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap)
        await _fill(bootstrap, queue, [b"%d" % number for number in range(20)])
        async with _open(bootstrap, queue, max_poll_records=7) as consumer:
            seen: list[bytes] = []
            while len(seen) < 14:
                records = await _some(consumer)
                assert len(records) <= 7
                assert {record.delivery_count for record in records} == {1}
                seen += [record.value for record in records]
            assert seen == [b"%d" % number for number in range(14)]
            assert (consumer.acquisition_lock_timeout_ms() or 0) >= 1000
            assert consumer.assignment() == {TopicPartition(queue, 0)}
        # The last seven were handed over, but nothing was asked for after them: they come again.
        async with _open(bootstrap, queue) as consumer:
            again: list[ShareRecord] = []
            while len(again) < 13:
                again += await _some(consumer)
            assert [record.value for record in again] == [b"%d" % number for number in range(7, 20)]
            await consumer.commit()
            assert await _nothing_comes(consumer)

    _run(work())


def test_a_loop_takes_one_record_at_a_time(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap)
        await _fill(bootstrap, queue, [b"a", b"b", b"c"])
        async with _open(bootstrap, queue) as consumer:
            async for record in consumer:
                if record.value == b"b":
                    break
        async with _open(bootstrap, queue) as consumer:
            records = await _some(consumer)
            while len(records) < 2:
                records += await _some(consumer)
            assert [(record.value, record.delivery_count) for record in records] == [(b"b", 2), (b"c", 2)]

    _run(work())


def test_each_record_can_be_accepted_released_rejected(bootstrap: str) -> None:
    told: list[tuple[tuple[int, ...], ClientError | None]] = []

    async def work() -> None:
        queue = await _queue(bootstrap)
        await _fill(bootstrap, queue, [b"accept", b"release", b"reject"])

        def tell(_: TopicPartition, offsets: tuple[int, ...], error: ClientError | None) -> None:
            told.append((offsets, error))

        async with _open(bootstrap, queue, **EXPLICIT, on_acknowledged=tell) as consumer:
            records = await _some(consumer)
            for record in records:
                consumer.acknowledge(record, AcknowledgeType[record.value.decode().upper()])
            with pytest.raises(NotHeld):
                consumer.acknowledge(records[0])
            await consumer.commit()
            assert told == [((0, 1, 2), None)]
            (record,) = await _some(consumer)
            assert (record.value, record.offset, record.delivery_count) == (b"release", 1, 2)
            with pytest.raises(ClientError, match="not acknowledged"):
                await consumer.poll(100)
            consumer.acknowledge(record)
            assert await _nothing_comes(consumer)
        assert told[1:] == [((1,), None)]

    _run(work())


def test_implicit_acknowledgement_takes_no_explicit_one(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap)
        await _fill(bootstrap, queue, [b"one"])
        async with _open(bootstrap, queue) as consumer:
            (record,) = await _some(consumer)
            with pytest.raises(ClientError, match=r"share\.acknowledgement\.mode"):
                consumer.acknowledge(record)

    _run(work())


def test_a_renewed_record_comes_again_and_is_accepted_later(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap)
        await _fill(bootstrap, queue, [b"slow"])
        async with _open(bootstrap, queue, **EXPLICIT) as consumer:
            (record,) = await _some(consumer)
            consumer.acknowledge(record, AcknowledgeType.RENEW)
            assert await consumer.poll(100) == [record]
            consumer.acknowledge(record, AcknowledgeType.RENEW)
            await consumer.commit()
            consumer.acknowledge(record)
            await consumer.commit()
            assert await _nothing_comes(consumer)

    _run(work())


def test_a_record_whose_lock_timed_out_goes_to_another(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap, share_record_lock_duration_ms="1000")
        await _fill(bootstrap, queue, [b"slow"])
        async with (
            _open(bootstrap, queue, **EXPLICIT) as slow,
            _open(bootstrap, queue, **EXPLICIT) as other,
        ):
            (record,) = await _some(slow)
            assert slow.acquisition_lock_timeout_ms() == 1000
            (again,) = await _some(other)
            assert (again.offset, again.delivery_count) == (record.offset, 2)
            slow.acknowledge(record)
            with pytest.raises(AcknowledgeFailed) as failed:
                await slow.commit()
            assert list(failed.value.failed) == [TopicPartition(queue, 0)]
            other.acknowledge(again)
            await other.commit()

    _run(work())


def test_two_consumers_share_one_partition(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap, share_record_lock_duration_ms="60000")
        await _fill(bootstrap, queue, [b"%d" % number for number in range(300)], batch_size=100)
        limit = {"share_acquire_mode": "record_limit", "max_poll_records": 10}
        seen: list[bytes] = []

        async def worker() -> int:
            mine = 0
            async with _open(bootstrap, queue, **limit) as consumer:
                while len(seen) < 300:
                    records = await consumer.poll(200)
                    assert len(records) <= 10
                    mine += len(records)
                    seen.extend(record.value for record in records)
                    await consumer.commit()
            return mine

        shares = await asyncio.gather(worker(), worker())
        assert sorted(seen, key=int) == [b"%d" % number for number in range(300)]
        assert min(shares) > 0

    _run(work())


def test_close_gives_back_what_is_held(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap, share_record_lock_duration_ms="60000")
        await _fill(bootstrap, queue, [b"held"])
        async with _open(bootstrap, queue) as first:
            await _some(first)
        async with _open(bootstrap, queue) as second:
            (record,) = await _some(second)
            assert record.delivery_count == 2

    _run(work())


def test_an_offset_without_a_record_is_a_gap(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap)
        async with Producer(bootstrap, transactional_id=queue) as producer:
            for value in (b"first", b"second"):
                async with producer.transaction():
                    await producer.send(queue, value)
        async with _open(bootstrap, queue, **EXPLICIT) as consumer:
            seen: list[bytes] = []
            while len(seen) < 2:
                for record in await _some(consumer):
                    consumer.acknowledge(record)
                    seen.append(record.value)
            await consumer.commit()
            assert seen == [b"first", b"second"]
            async with Admin(bootstrap) as admin:
                # What counts is the lag: the offset is moved later.
                await until(lambda: _lag(admin, queue), 0)

    _run(work())


def test_what_cannot_be_deserialized_is_told_and_goes_back(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap, share_delivery_count_limit="2")
        await _fill(bootstrap, queue, [b"1", b"{", b"3"])
        failures = 0
        seen: list[int] = []
        async with _open(bootstrap, queue, value_deserializer=from_json) as consumer:
            while len(seen) < 2 or failures < 2:
                try:
                    seen += [record.value for record in await consumer.poll(1000)]
                except UnreadableRecord as error:
                    failures += "offset 1 cannot be deserialized" in str(error)
        assert sorted(seen) == [1, 3]

    _run(work())


async def _lose_session(bootstrap: str, queue: str, consumer: ShareConsumer) -> None:
    """Take a record and break the connections, until the broker notices before the record is acknowledged."""
    for pause_s in (0, 0.1, 0.5, 2, 5, 20):
        await _fill(bootstrap, queue, [b"once"])
        (record,) = await _some(consumer)
        for connection in consumer._cluster._connections.values():
            connection._transport.abort()
        await asyncio.sleep(pause_s)
        consumer.acknowledge(record)
        try:
            await consumer.commit()
        except AcknowledgeFailed:
            return
    pytest.fail("a session without a connection can still acknowledge")


def test_records_of_a_lost_session_are_delivered_again(bootstrap: str) -> None:
    async def work() -> None:
        queue = await _queue(bootstrap, share_record_lock_duration_ms="60000")
        async with _open(bootstrap, queue, **EXPLICIT) as consumer:
            await _lose_session(bootstrap, queue, consumer)
            (again,) = await _some(consumer)
            assert again.delivery_count == 2
            with pytest.raises(ClientError, match="not acknowledged"):
                await consumer.poll(10)
            consumer.acknowledge(again)
            await consumer.commit()

    _run(work())


def test_threads_have_the_same_without_a_loop(bootstrap: str) -> None:
    async def prepare() -> str:
        queue = await _queue(bootstrap, partitions=2)
        await _fill(bootstrap, queue, [b"%d" % number for number in range(10)])
        return queue

    queue = asyncio.run(prepare())
    told: list[tuple[int, ...]] = []
    with sync.ShareConsumer(
        bootstrap, group_id=queue, on_acknowledged=lambda _, offsets, __: told.append(offsets)
    ) as consumer:
        consumer.subscribe([queue])
        seen = []
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 10:
                break
        consumer.commit()
        consumer.wakeup()
        assert list(consumer) == []
        assert consumer.subscription() == {queue}
    assert sorted(seen) == [b"%d" % number for number in range(10)]
    assert sum(map(len, told)) == 10
