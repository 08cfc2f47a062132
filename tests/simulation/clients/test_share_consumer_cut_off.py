"""Calls of a share consumer may be cancelled at each of their awaits: each record is done, none is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.simulation.clients.cutting import Cut, Stage, cut_everywhere

from ottla.client.producer import Producer
from ottla.client.share import AcknowledgeType, ShareConsumer
from ottla.client.share.record import ShareRecord

Scene = Callable[[Stage, Cut], Awaitable[None]]
VALUES = [b"%d" % number for number in range(4)]


async def filled(stage: Stage) -> tuple[str, str]:
    """Make a topic with values, and a group that begins at the beginning."""
    topic, group = await stage.topic(2), await stage.share_group()
    async with Producer(stage.bootstrap, linger_ms=0) as producer:
        for number, value in enumerate(VALUES):
            await producer.send(topic, value, partition=number % 2)
    return topic, group


def worker(stage: Stage, group: str, **settings: Any) -> ShareConsumer:
    """Make a member that acknowledges each record by itself."""
    return ShareConsumer(stage.bootstrap, group_id=group, share_acknowledgement_mode="explicit", **settings)


async def work(
    consumer: ShareConsumer, done: list[bytes], at_hand: list[ShareRecord], count: int = len(VALUES)
) -> None:
    """Accept records until so many are done."""
    async with asyncio.timeout(300):
        while True:
            for record in at_hand:
                consumer.acknowledge(record)
                done.append(record.value or b"")
            await consumer.commit()
            if len(set(done)) >= count:
                return
            at_hand = await consumer.poll(1000)


async def check_all_is_done(stage: Stage, group: str, topic: str) -> None:
    """See that nobody gets anything any more."""
    async with worker(stage, group) as consumer:
        consumer.subscribe([topic])
        for _ in range(20):
            again = await consumer.poll(1000)
            assert not again, "what was acknowledged is delivered again"


async def starting(stage: Stage, cut: Cut) -> None:
    topic, group = await filled(stage)
    consumer = worker(stage, group)
    await cut(consumer.start())
    if cut.was_cut:
        await consumer.start()
    consumer.subscribe([topic])
    done: list[bytes] = []
    await work(consumer, done, [])
    assert sorted(done) == VALUES
    await consumer.close()


async def polling(stage: Stage, cut: Cut) -> None:
    topic, group = await filled(stage)
    done: list[bytes] = []
    async with worker(stage, group) as consumer:
        consumer.subscribe([topic])
        await work(consumer, done, await cut(consumer.poll(5000)) or [])
    assert sorted(done) == VALUES
    await check_all_is_done(stage, group, topic)


async def iterating(stage: Stage, cut: Cut) -> None:
    topic, group = await filled(stage)
    done: list[bytes] = []
    async with worker(stage, group) as consumer:
        consumer.subscribe([topic])
        record = await cut(anext(consumer))
        await work(consumer, done, [] if record is None else [record])
    assert sorted(done) == VALUES


async def committing(stage: Stage, cut: Cut) -> None:
    topic, group = await filled(stage)
    done: list[bytes] = []
    async with worker(stage, group) as consumer:
        consumer.subscribe([topic])
        async with asyncio.timeout(120):
            while not (records := await consumer.poll(1000)):
                pass
        for record in records:
            consumer.acknowledge(record)
            done.append(record.value or b"")
        await cut(consumer.commit())
        await work(consumer, done, [])
    # A call that was cut off goes on by itself: what it says counts.
    assert sorted(done) == VALUES
    await check_all_is_done(stage, group, topic)


async def renewing(stage: Stage, cut: Cut) -> None:
    topic, group = await filled(stage)
    done: list[bytes] = []
    async with worker(stage, group) as consumer:
        consumer.subscribe([topic])
        async with asyncio.timeout(120):
            while not (records := await consumer.poll(1000)):
                pass
        for record in records:
            consumer.acknowledge(record, AcknowledgeType.RENEW)
        found = await cut(consumer.poll(1000))
        renewed = await consumer.poll(1000) if found is None else found
        assert {record.offset for record in renewed} == {record.offset for record in records}
        await work(consumer, done, renewed)
    assert sorted(done) == VALUES


async def unsubscribing(stage: Stage, cut: Cut) -> None:
    topic, group = await filled(stage)
    done: list[bytes] = []
    async with worker(stage, group) as consumer:
        consumer.subscribe([topic])
        await consumer.poll(5000)
        await cut(consumer.unsubscribe())
        await consumer.unsubscribe()
        consumer.subscribe([topic])
        await work(consumer, done, [])
    assert sorted(done) == VALUES


async def closing(stage: Stage, cut: Cut) -> None:
    topic, group = await filled(stage)
    consumer = worker(stage, group)
    await consumer.start()
    consumer.subscribe([topic])
    async with asyncio.timeout(120):
        while not (records := await consumer.poll(1000)):
            pass
    consumer.acknowledge(records[0])
    await cut(consumer.close())
    await consumer.close()
    done: list[bytes] = []
    async with worker(stage, group) as other:
        other.subscribe([topic])
        await work(other, done, [], len(VALUES) - 1)
        if not cut.was_cut:
            assert records[0].value not in done


@pytest.mark.parametrize(
    "scene", [starting, polling, iterating, committing, renewing, unsubscribing, closing]
)
def test_a_call_of_a_share_consumer_may_be_cut_off_anywhere(scene: Scene) -> None:
    assert cut_everywhere(scene) > 0
