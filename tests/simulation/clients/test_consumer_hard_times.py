"""Single stories of consumers: partitions that are gone, and members that come and go."""

import asyncio
from typing import Any

import pytest
from tests.simulation.clients.cutting import Stage
from tests.simulation.clients.test_hard_times import MEMBERS, next_values, produce, tell

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.client.share import ShareConsumer
from ottla.model.ids import TopicPartition

_EARLIEST: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}


def test_what_was_fetched_of_a_partition_that_was_given_up_is_not_handed_over() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic(partitions=2)
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        async with Consumer(stage.bootstrap, auto_offset_reset="earliest") as consumer:
            await _produce_to(stage, first, b"1", b"2", b"3")
            await _produce_to(stage, second, b"4")
            consumer.assign([first])
            assert (await anext(consumer)).value == b"1"
            consumer.assign([second])
            async with asyncio.timeout(60):
                assert (await anext(consumer)).value == b"4"
            # It comes back as one that nothing is known of.
            consumer.assign([first])
            consumer.seek(first, 1)
            assert [(await anext(consumer)).value for _ in range(2)] == [b"2", b"3"]

    tell(story)


@pytest.mark.parametrize("member", MEMBERS)
def test_what_was_fetched_of_lost_partitions_is_not_handed_over(member: str) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1", b"2", b"3")
        settings = {**_EARLIEST, "max_poll_interval_ms": 1000, **MEMBERS[member]}
        async with Consumer(stage.bootstrap, group_id="g", **settings) as consumer:
            consumer.subscribe([topic])
            async with asyncio.timeout(60):
                assert (await anext(consumer)).value == b"1"
                await consumer.commit()
                # Another member could have read what follows by now.
                await asyncio.sleep(10)
                async with Consumer(stage.bootstrap, group_id="g") as other:
                    await other.commit({TopicPartition(topic, 0): 2})
                assert (await anext(consumer)).value == b"3"

    tell(story)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_joins_again_after_the_callback_of_a_loss_failed(member: str) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1", b"2")
        settings = {**_EARLIEST, "max_poll_interval_ms": 1000, "max_poll_records": 1, **MEMBERS[member]}

        def fail(_partitions: object) -> None:
            raise ZeroDivisionError("the user's")

        async with Consumer(stage.bootstrap, group_id="g", **settings) as consumer:
            consumer.subscribe([topic], on_lost=fail)
            assert await next_values(consumer) == [b"1"]
            await consumer.commit()
            await asyncio.sleep(10)
            with pytest.raises(ZeroDivisionError):
                await next_values(consumer)
            assert await next_values(consumer) == [b"2"]

    tell(story)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_that_goes_while_it_joins_leaves_nothing_behind(member: str) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1")
        here, there = stage.loop.machine.host, stage.node.machine.host
        async with Admin(stage.bootstrap) as admin:
            for step in range(30):
                group_id = f"{member} {step}"
                async with Consumer(
                    stage.bootstrap, group_id=group_id, **_EARLIEST, **MEMBERS[member]
                ) as consumer:
                    consumer.subscribe([topic])
                    await consumer.poll(step)
                    # What it asked last reaches the broker, but the answer is still on its way.
                    stage.network.slow_down(there, here, 2_000_000)
                    await consumer.poll(1000)
                stage.network.slow_down(there, here, 0)
                groups = await admin.groups.list()
                if any(group.group_id == group_id for group in groups):
                    assert not (await admin.groups.describe(group_id)).members, f"after {step} ms"

    tell(story)


def test_a_share_consumer_that_goes_while_it_joins_leaves_nothing_behind() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        here, there = stage.loop.machine.host, stage.node.machine.host
        async with Admin(stage.bootstrap) as admin:
            for step in range(30):
                group_id = f"share {step}"
                async with ShareConsumer(stage.bootstrap, group_id=group_id) as consumer:
                    consumer.subscribe([topic])
                    await consumer.poll(step)
                    stage.network.slow_down(there, here, 2_000_000)
                    await consumer.poll(1000)
                stage.network.slow_down(there, here, 0)
                groups = await admin.groups.list()
                if any(group.group_id == group_id for group in groups):
                    assert not (await admin.share_groups.describe(group_id)).members, f"after {step} ms"

    tell(story)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_topic_that_is_made_again_is_read_from_its_beginning(member: str) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, *(b"old %d" % number for number in range(5)))
        settings: dict[str, Any] = {**_EARLIEST, "metadata_max_age_ms": 2_000, **MEMBERS[member]}
        settings["allow_auto_create_topics"] = False
        async with Consumer(stage.bootstrap, group_id="g", **settings) as consumer:
            consumer.subscribe([topic])
            await next_values(consumer, 5)
            await consumer.commit()
            async with Admin(stage.bootstrap) as admin:
                await admin.topics.delete(topic)
                await admin.topics.create(topic, partitions=1)
            new = [b"new %d" % number for number in range(20)]
            await produce(stage, topic, *new)
            assert await next_values(consumer, 20) == new

    tell(story)


async def _produce_to(stage: Stage, where: TopicPartition, *values: bytes) -> None:
    async with Producer(stage.bootstrap, linger_ms=0) as producer:
        for value in values:
            await producer.send(where.topic, value, partition=where.partition)
