"""Single stories of clients whose brokers go away at the wrong moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.simulation.clients.cutting import Cut, Stage

from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError, ConnectionLost
from ottla.client.producer import Producer
from ottla.client.share import ShareConsumer
from ottla.model.ids import TopicPartition

Story = Callable[[Stage], Awaitable[None]]
MEMBERS: dict[str, dict[str, Any]] = {
    "classic": {"session_timeout_ms": 6000, "heartbeat_interval_ms": 300},
    "broker-led": {"group_protocol": "consumer"},
}


def tell(story: Story) -> None:
    async def scene(stage: Stage, _cut: Cut) -> None:
        await story(stage)

    Stage().play(scene, Cut(0, is_late=False))


async def produce(stage: Stage, topic: str, *values: bytes) -> None:
    async with Producer(stage.bootstrap, linger_ms=0) as producer:
        for value in values:
            await producer.send_and_wait(topic, value)


async def next_values(consumer: Consumer, count: int = 1) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with asyncio.timeout(200):
        while len(found) < count:
            found += [record.value for record in await consumer.poll(1000)]
    return found


def cut_off(stage: Stage) -> None:
    """Have the node refuse the clients."""
    stage.network.reject(stage.loop.machine.host, stage.node.machine.host)


def let_in(stage: Stage) -> None:
    stage.network.admit(stage.loop.machine.host, stage.node.machine.host)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_that_is_late_while_its_broker_is_away_joins_again(member: str) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1")
        settings = {"auto_offset_reset": "earliest", "max_poll_interval_ms": 1000, **MEMBERS[member]}
        async with Consumer(stage.bootstrap, group_id="g", **settings) as consumer:
            consumer.subscribe([topic])
            assert await next_values(consumer) == [b"1"]
            await consumer.commit()
            cut_off(stage)
            await asyncio.sleep(90)
            let_in(stage)
            await produce(stage, topic, b"2")
            assert await next_values(consumer) == [b"2"]
            await consumer.commit()
            assert await stage.committed("g", topic) == [2]

    tell(story)


def test_a_login_that_ends_while_a_broker_is_silent_does_not_keep_the_next_request() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        async with Producer(stage.bootstrap, linger_ms=0, request_timeout_ms=2000) as producer:
            await producer.send_and_wait(topic, b"1")
            cluster = producer._cluster
            [connection] = cluster._connections.values()
            node_id = next(iter(cluster.topology.brokers))
            stage.network.lose_track(stage.node.machine.host)
            # A caller that gives up takes the time limit of its answer along.
            asked = asyncio.create_task(cluster.refresh([topic]))
            await asyncio.sleep(0.1)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            assert connection.in_flight
            connection.is_logged_in_for(1)
            await asyncio.sleep(0.1)
            async with asyncio.timeout(60):
                assert await cluster.connection(node_id) is not connection

    tell(story)


def test_a_consumer_is_closed_though_no_broker_is_there() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1")
        settings: dict[str, Any] = {
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        consumer = Consumer(stage.bootstrap, **settings)
        await consumer.start()
        consumer.subscribe([topic])
        assert await next_values(consumer) == [b"1"]
        cut_off(stage)
        await asyncio.sleep(1)
        await consumer.close()

    tell(story)


def test_an_automatic_commit_that_is_late_does_not_undo_a_later_one() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1", b"2")
        where = TopicPartition(topic, 0)
        async with Consumer(stage.bootstrap, group_id="g", enable_auto_commit=False) as consumer:
            assert consumer._offsets is not None
            asks = consumer._offsets._ask
            fails = True

            async def ask(kind: type[Any], build: Any) -> Any:
                nonlocal fails
                if fails:
                    fails = False
                    raise ConnectionLost("the connection broke")
                return await asks(kind, build)

            consumer._offsets._ask = ask  # type: ignore[method-assign]
            consumer.assign([where])
            early = asyncio.create_task(consumer.commit({where: 1}))
            await asyncio.sleep(0)
            await consumer.commit({where: 2})
            await early
            assert await stage.committed("g", topic) == [2]

    tell(story)


def test_a_transaction_that_is_open_when_the_producer_is_closed_is_aborted_at_once() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        async with Producer(stage.bootstrap, linger_ms=0, transactional_id="t") as producer:
            producer.begin_transaction()
            await producer.send(topic, b"1")
        began_s = stage.loop.time()
        await produce(stage, topic, b"2")
        assert await stage.values(topic) == [b"2"]
        assert stage.loop.time() - began_s < 10

    tell(story)


def test_heartbeats_do_not_wait_for_metadata() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1")
        # A commit would show that the member lives, too.
        settings: dict[str, Any] = {"enable_auto_commit": False, "metadata_max_age_ms": 500}
        settings |= {"auto_offset_reset": "earliest"}
        async with Consumer(stage.bootstrap, group_id="g", **settings, **MEMBERS["classic"]) as consumer:
            lost: list[object] = []
            consumer.subscribe([topic], on_lost=lost.append)
            assert await next_values(consumer) == [b"1"]

            async def slow(*_arguments: Any) -> Any:
                await asyncio.sleep(30)

            consumer._cluster.refresh = slow  # type: ignore[method-assign,assignment]
            for _ in range(60):
                await consumer.poll(1000)
            assert not lost
            assert consumer.group_metadata().generation == 1

    tell(story)


def test_an_assignment_of_a_topic_that_nobody_knows_yet_is_looked_at_again() -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1")
        settings: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with Consumer(stage.bootstrap, group_id="g", **settings, **MEMBERS["broker-led"]) as consumer:
            consumer.subscribe([topic])
            membership: Any = consumer._membership
            known, asked = membership._by_name, 0

            async def not_yet(target: Any) -> Any:
                nonlocal asked
                asked += 1
                return None if asked < 4 else await known(target)

            membership._by_name = not_yet
            async with asyncio.timeout(60):
                assert (await anext(consumer)).value == b"1"

    tell(story)


def test_a_member_joins_again_after_an_assignor_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1")
        async with Consumer(stage.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])

            async def fail(_answer: Any) -> Any:
                monkeypatch.undo()
                raise ZeroDivisionError("a bug")

            monkeypatch.setattr(consumer._membership, "_assign", fail)
            with pytest.raises(ZeroDivisionError):
                await next_values(consumer)
            assert await next_values(consumer) == [b"1"]

    tell(story)


def test_each_outcome_is_told_though_the_callback_fails() -> None:
    async def story(stage: Stage) -> None:
        first, second = TopicPartition("t", 0), TopicPartition("t", 1)
        told: list[TopicPartition] = []

        def tell_once(where: TopicPartition, _offsets: tuple[int, ...], _error: ClientError | None) -> None:
            told.append(where)
            raise ZeroDivisionError("the user's")

        async with ShareConsumer(stage.bootstrap, group_id="g", on_acknowledged=tell_once) as consumer:
            consumer._outcomes += [(first, (0,), None), (second, (0,), None)]
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):
                    await consumer.commit()
        assert told == [first, second]

    tell(story)


def test_a_bug_in_fetching_is_told_and_not_repeated_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stage: Stage) -> None:
        topic = await stage.topic()
        await produce(stage, topic, b"1")
        async with Consumer(stage.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert consumer._fetcher is not None

            def break_down(*_arguments: Any) -> None:
                raise ZeroDivisionError("a bug")

            monkeypatch.setattr(consumer._fetcher, "_take", break_down)
            with pytest.raises(ClientError, match="a bug"):
                await next_values(consumer)

    tell(story)
