"""Calls of a producer may be cancelled at each of their awaits: nothing is lost, doubled or left behind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from tests.simulation.clients.cutting import Cut, Stage, cut_everywhere

from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.client.producer.transactions import WrongTransactionState
from ottla.model.ids import TopicPartition

Scene = Callable[[Stage, Cut], Awaitable[None]]
V1 = {"transaction.version": "1"}


async def starting(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic()
    producer = Producer(stage.bootstrap, linger_ms=0)
    await cut(producer.start())
    if cut.was_cut:
        await producer.start()
    await producer.send_and_wait(topic, b"1")
    await producer.close()
    assert await stage.values(topic) == [b"1"]


async def starting_for_transactions(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic()
    producer = Producer(stage.bootstrap, linger_ms=0, transactional_id=stage.name("t"))
    await cut(producer.start())
    if cut.was_cut:
        await producer.start()
    async with producer.transaction():
        await producer.send(topic, b"1")
    await producer.close()
    assert await stage.values(topic) == [b"1"]


async def sending(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic()
    async with Producer(stage.bootstrap, linger_ms=0) as producer:
        await cut(producer.send(topic, b"cut off"))
        await producer.send(topic, b"2")
    # What was cancelled was not taken in.
    assert await stage.values(topic) == ([] if cut.was_cut else [b"cut off"]) + [b"2"]


async def sending_to_a_full_buffer(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic()
    value = bytes(700)
    async with Producer(stage.bootstrap, linger_ms=0, buffer_memory=1000, batch_size=800) as producer:
        first = await producer.send(topic, value)
        others = [asyncio.create_task(producer.send(topic, value)) for _ in range(2)]
        await cut(producer.send(topic, value))
        others += [asyncio.create_task(producer.send(topic, value)) for _ in range(2)]
        for other in [first, *await asyncio.gather(*others)]:
            await other
        assert producer._sender is not None
        await producer.flush()
        assert producer._sender.accumulator.used_bytes == 0
    assert len(await stage.values(topic)) == 5 + (not cut.was_cut)


async def sending_and_waiting(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic()
    async with Producer(stage.bootstrap, linger_ms=0) as producer:
        await cut(producer.send_and_wait(topic, b"1"))
        await producer.send_and_wait(topic, b"2")
    found = await stage.values(topic)
    assert found == [b"1", b"2"] or (cut.was_cut and found == [b"2"])


async def flushing(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic(2)
    async with Producer(stage.bootstrap, linger_ms=1000) as producer:
        sent = [await producer.send(topic, b"%d" % number, partition=number % 2) for number in range(4)]
        await cut(producer.flush())
        await producer.flush()
        assert all(record.is_done for record in sent)
    assert await stage.values(topic) == [b"0", b"2", b"1", b"3"]


async def closing(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic()
    producer = Producer(stage.bootstrap, linger_ms=1000)
    await producer.start()
    sent = await producer.send(topic, b"1")
    await cut(producer.close())
    await producer.close()
    try:
        await sent
    except ClientError:
        assert cut.was_cut
    else:
        assert await stage.values(topic) == [b"1"]


async def committing(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic(2)
    async with Producer(stage.bootstrap, linger_ms=0, transactional_id=stage.name("t")) as producer:
        producer.begin_transaction()
        for number in range(2):
            await producer.send(topic, b"first", partition=number)
        await cut(producer.commit_transaction())
        if cut.was_cut:
            await producer.commit_transaction()
        async with producer.transaction():
            await producer.send(topic, b"second", partition=0)
    assert await stage.values(topic) == [b"first", b"second", b"first"]


async def aborting(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic(2)
    async with Producer(stage.bootstrap, linger_ms=0, transactional_id=stage.name("t")) as producer:
        producer.begin_transaction()
        for number in range(2):
            await producer.send(topic, b"first", partition=number)
        await producer.flush()
        await cut(producer.abort_transaction())
        if cut.was_cut:
            await producer.abort_transaction()
        async with producer.transaction():
            await producer.send(topic, b"second", partition=0)
    assert await stage.values(topic) == [b"second"]


async def aborting_what_is_on_its_way(stage: Stage, cut: Cut) -> None:
    topic = await stage.topic(2)
    async with Producer(stage.bootstrap, linger_ms=0, transactional_id=stage.name("t")) as producer:
        producer.begin_transaction()
        for number in range(6):
            await producer.send(topic, bytes(9000), partition=number % 2)
        await cut(producer.abort_transaction())
        if cut.was_cut:
            await producer.abort_transaction()
        async with producer.transaction():
            await producer.send(topic, b"second", partition=0)
    assert await stage.values(topic) == [b"second"]


async def committing_offsets(stage: Stage, cut: Cut) -> None:
    topic, group = await stage.topic(), stage.name("group")
    offsets = {TopicPartition(topic, 0): 7}
    async with Producer(stage.bootstrap, linger_ms=0, transactional_id=stage.name("t")) as producer:
        producer.begin_transaction()
        await producer.send(topic, b"1")
        await cut(producer.send_offsets_to_transaction(offsets, group))
        await producer.send_offsets_to_transaction(offsets, group)
        await producer.commit_transaction()
    assert await stage.values(topic) == [b"1"]
    assert await stage.committed(group, topic) == [7]


async def a_whole_transaction(stage: Stage, cut: Cut) -> None:
    topic, group = await stage.topic(2), stage.name("group")

    async def block() -> None:
        async with producer.transaction():
            await producer.send(topic, b"1", partition=0)
            await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, group)
            await producer.send(topic, b"1", partition=1)

    async with Producer(stage.bootstrap, linger_ms=0, transactional_id=stage.name("t")) as producer:
        await cut(block())
        # If the coordinator had been asked to commit, there is only one way to go on.
        with suppress(WrongTransactionState):
            await producer.commit_transaction()
        async with producer.transaction():
            await producer.send(topic, b"2", partition=0)
    found = await stage.values(topic)
    if found == [b"2"]:
        assert cut.was_cut
        assert await stage.committed(group, topic) == [None, None]
    else:
        assert found == [b"1", b"2", b"1"]
        assert await stage.committed(group, topic) == [7, None]


PLAIN = (starting, sending, sending_to_a_full_buffer, sending_and_waiting, flushing, closing)
TRANSACTIONAL = (
    starting_for_transactions,
    committing,
    aborting,
    aborting_what_is_on_its_way,
    committing_offsets,
    a_whole_transaction,
)


@pytest.mark.parametrize("scene", PLAIN)
def test_a_call_of_a_producer_may_be_cut_off_anywhere(scene: Scene) -> None:
    assert cut_everywhere(scene) > 0


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("scene", TRANSACTIONAL)
def test_a_transaction_may_be_cut_off_anywhere(scene: Scene, version: str) -> None:
    assert cut_everywhere(scene, features=(f"transaction.version={version}",)) > 0
