"""Calls of a consumer may be cancelled at each of their awaits: nothing is skipped, stuck or left behind."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from tests.simulation.clients.cutting import Cut, Stage, cut_everywhere

from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition

Scene = Callable[[Stage, Cut], Awaitable[None]]
VALUES = [b"%d" % number for number in range(6)]
MEMBERS: dict[str, dict[str, Any]] = {
    "eager": {"partition_assignment_strategy": "range"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "broker-led": {"group_protocol": "consumer"},
}


async def filled(stage: Stage, partitions: int = 2) -> str:
    """Make a topic whose partitions have the values in turn."""
    topic = await stage.topic(partitions)
    async with Producer(stage.bootstrap, linger_ms=0) as producer:
        for number, value in enumerate(VALUES):
            await producer.send(topic, value, partition=number % partitions)
    return topic


def reader(stage: Stage, **settings: Any) -> Consumer:
    """Make a consumer that begins at the beginning."""
    return Consumer(stage.bootstrap, auto_offset_reset="earliest", **settings)


async def read_all(consumer: Consumer, seen: list[bytes], count: int = len(VALUES)) -> None:
    """Poll until there are so many values."""
    async with asyncio.timeout(120):
        while len(seen) < count:
            seen += [record.value or b"" for record in await consumer.poll(1000)]


async def starting(stage: Stage, cut: Cut) -> None:
    topic = await filled(stage)
    consumer = reader(stage)
    await cut(consumer.start())
    if cut.was_cut:
        await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    await read_all(consumer, [], 3)
    await consumer.close()


async def asking(stage: Stage, cut: Cut, *, what: str) -> None:
    topic = await filled(stage)
    where = TopicPartition(topic, 0)
    async with reader(stage, group_id=stage.name("group"), enable_auto_commit=False) as consumer:
        consumer.assign([where, TopicPartition(topic, 1)])

        def call() -> Any:
            if what == "position":
                return consumer.position(where)
            if what == "partitions_for":
                return consumer.partitions_for(topic)
            if what == "offsets_for_times":
                return consumer.offsets_for_times({where: 0})
            if what == "commit":
                return consumer.commit({where: 2})
            return getattr(consumer, what)([where])

        if what == "commit":
            await read_all(consumer, [])
        await cut(call())
        found = await call()
        if what == "offsets_for_times":
            found = found[where].offset
        assert (
            found
            == {
                "position": 0,
                "partitions_for": {where, TopicPartition(topic, 1)},
                "offsets_for_times": 0,
                "beginning_offsets": {where: 0},
                "end_offsets": {where: 3},
                "committed": {where: None},
                "commit": None,
            }[what]
        )
        if what == "commit":
            committed = (await consumer.committed([where]))[where]
            assert committed is not None
            assert committed.offset == 2
        else:
            await read_all(consumer, [])


async def polling(stage: Stage, cut: Cut, *, member: str) -> None:
    topic = await filled(stage)
    seen: list[bytes] = []
    async with reader(stage, group_id=stage.name("group"), **MEMBERS[member]) as consumer:
        consumer.subscribe([topic])
        seen += [record.value or b"" for record in await cut(consumer.poll(5000)) or ()]
        await read_all(consumer, seen)
    assert sorted(seen) == VALUES


async def iterating(stage: Stage, cut: Cut, *, member: str) -> None:
    topic = await filled(stage)
    seen: list[bytes] = []
    async with reader(stage, group_id=stage.name("group"), **MEMBERS[member]) as consumer:
        consumer.subscribe([topic])
        record = await cut(anext(consumer))
        seen += [] if record is None else [record.value]
        async with asyncio.timeout(120):
            while len(seen) < len(VALUES):
                seen.append((await anext(consumer)).value)
    assert sorted(seen) == VALUES


async def polling_while_another_comes(stage: Stage, cut: Cut, *, member: str) -> None:
    topic, group = await filled(stage), stage.name("group")
    owned: list[set[TopicPartition]] = [set(), set()]
    settings = {"group_id": group, "auto_commit_interval_ms": 100_000, **MEMBERS[member]}
    seen: list[bytes] = []

    def subscribe(consumer: Consumer, number: int) -> None:
        async def assigned(some: frozenset[TopicPartition]) -> None:
            await asyncio.sleep(0.01)
            owned[number] |= some

        async def revoked(some: frozenset[TopicPartition]) -> None:
            await asyncio.sleep(0.01)
            owned[number] -= some

        consumer.subscribe([topic], on_assigned=assigned, on_revoked=revoked)

    async with reader(stage, **settings) as first:
        subscribe(first, 0)
        await read_all(first, seen)
        async with reader(stage, **settings) as second:
            subscribe(second, 1)
            joining = asyncio.create_task(_poll_for_ever(second))
            for _ in range(40):
                await asyncio.sleep(0.05)
                if first._membership is not None and first._membership.needs_work:
                    break
            await cut(first.poll(300))
            async with asyncio.timeout(120):
                while (len(owned[0]), len(owned[1])) != (1, 1):
                    await first.poll(100)
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
            assert not owned[0] & owned[1]
            assert first.assignment() == owned[0]
            assert not first.paused()
            async with Producer(stage.bootstrap, linger_ms=0) as producer:
                for where in owned[0]:
                    await producer.send_and_wait(topic, b"new", partition=where.partition)
            seen.clear()
            await read_all(first, seen, 1)
            assert seen == [b"new"]


async def _poll_for_ever(consumer: Consumer) -> None:
    while True:
        await consumer.poll(100)


async def unsubscribing(stage: Stage, cut: Cut, *, member: str) -> None:
    topic = await filled(stage)
    seen: list[bytes] = []
    settings = {"group_id": stage.name("group"), **MEMBERS[member]}
    async with reader(stage, **settings) as consumer:
        consumer.subscribe([topic])
        await read_all(consumer, seen)
        await cut(consumer.unsubscribe())
        await consumer.unsubscribe()
        assert not consumer.assignment()
        consumer.subscribe([topic])
        async with Producer(stage.bootstrap, linger_ms=0) as producer:
            await producer.send_and_wait(topic, b"new")
        async with asyncio.timeout(120):
            while b"new" not in seen:
                await read_all(consumer, seen, len(seen) + 1)
    if not cut.was_cut:
        assert sorted(seen) == [*VALUES, b"new"]


async def closing(stage: Stage, cut: Cut, *, member: str) -> None:
    topic = await filled(stage)
    settings = {"group_id": stage.name("group"), **MEMBERS[member]}
    consumer = reader(stage, **settings)
    await consumer.start()
    consumer.subscribe([topic])
    await read_all(consumer, [])
    await cut(consumer.close())
    await consumer.close()
    if not cut.was_cut:
        assert await stage.committed(settings["group_id"], topic) == [3, 3]


async def closing_in_the_middle_of_a_rebalance(stage: Stage, cut: Cut, *, member: str) -> None:
    topic = await filled(stage)
    settings = {"group_id": stage.name("group"), **MEMBERS[member]}
    consumer = reader(stage, **settings)
    await consumer.start()
    called: list[str] = []

    async def assigned(_some: frozenset[TopicPartition]) -> None:
        called.append("assigned")
        await asyncio.sleep(30)
        called.append("done")

    consumer.subscribe([topic], on_assigned=assigned)
    while not called:
        polling = asyncio.create_task(consumer.poll(100))
        await asyncio.sleep(0.2)
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
    await cut(consumer.close())
    await consumer.close()
    if not cut.was_cut:
        assert called == ["assigned", "done"]


ASKED = (
    "position",
    "partitions_for",
    "offsets_for_times",
    "beginning_offsets",
    "end_offsets",
    "committed",
    "commit",
)
OF_MEMBERS = (
    polling,
    iterating,
    polling_while_another_comes,
    unsubscribing,
    closing,
    closing_in_the_middle_of_a_rebalance,
)


def test_the_start_of_a_consumer_may_be_cut_off_anywhere() -> None:
    assert cut_everywhere(starting) > 0


@pytest.mark.parametrize("what", ASKED)
def test_a_question_of_a_consumer_may_be_cut_off_anywhere(what: str) -> None:
    assert cut_everywhere(partial(asking, what=what)) > 0


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("scene", OF_MEMBERS)
def test_a_call_of_a_member_may_be_cut_off_anywhere(scene: Any, member: str) -> None:
    assert cut_everywhere(partial(scene, member=member)) > 0
