"""Ctrl-C at each wait of the calls of clients without an event loop. The loop's thread is simulated."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

import pytest
from tests.simulation.clients.cutting import BlockingScene, Cut, Stage, interrupt_everywhere

from ottla.client import surroundings, sync
from ottla.client.errors import ClientError
from ottla.client.producer.transactions import WrongTransactionState
from ottla.client.sync import admin as sync_admin
from ottla.client.sync import consumer as sync_consumer
from ottla.client.sync import producer as sync_producer
from ottla.client.sync import share_consumer as sync_share_consumer
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.client_loop import SimulatedLoop

T = TypeVar("T")
VALUES = [b"%d" % number for number in range(4)]


class SimulatedThread:
    """The thread of a loop, without a thread: the loop runs while somebody waits."""

    loop: SimulatedLoop
    cut: Cut | None = None

    def __init__(self, _name: str) -> None:
        self.is_running = True

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine. If it is cut off, that was Ctrl-C."""
        if not self.is_running:
            coroutine.close()
            raise RuntimeError("the client is closed")
        cut = self.cut
        if cut is None or cut.was_cut:
            return self.loop.run(coroutine)
        if cut.is_at_end:
            self.loop.run(coroutine)
            cut.was_cut = True
            raise KeyboardInterrupt

        async def cutting() -> T | None:
            return await cut(coroutine)

        result = self.loop.run(cutting())
        if cut.was_cut:
            raise KeyboardInterrupt
        return result  # type: ignore[return-value]  # it was not cut off

    def run_first(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run what a client starts with."""
        try:
            return self.run(coroutine)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all that still runs."""
        self.is_running = False

        async def end() -> None:
            left = asyncio.all_tasks(self.loop) - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

        self.loop.run(end())


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A stage on which the clients without an event loop run, too."""
    made = Stage()
    for module in (sync_admin, sync_consumer, sync_producer, sync_share_consumer):
        monkeypatch.setattr(module, "LoopThread", SimulatedThread)
    monkeypatch.setattr(SimulatedThread, "loop", made.loop, raising=False)
    with surroundings.using(lambda: made.loop.machine.now_ms() * 1_000_000, Random(1)):
        yield made
    made.node.stop()


def interrupted(cut: Cut, call: Callable[[], T]) -> T | None:
    """Make a call, with Ctrl-C at some wait. Returns None if there was one."""
    SimulatedThread.cut = cut
    try:
        return call()
    except KeyboardInterrupt:
        return None
    finally:
        SimulatedThread.cut = None


def topic_of(stage: Stage, partitions: int = 1) -> str:
    return stage.loop.run(stage.topic(partitions))


def values_of(stage: Stage, topic: str) -> list[bytes]:
    return stage.loop.run(stage.values(topic))


def filled(stage: Stage) -> str:
    topic = topic_of(stage, 2)
    with sync.Producer(stage.bootstrap) as producer:
        for number, value in enumerate(VALUES):
            producer.send(topic, value, partition=number % 2)
    return topic


def opening(stage: Stage, cut: Cut) -> None:
    topic = topic_of(stage)
    producer = interrupted(cut, lambda: sync.Producer(stage.bootstrap)) or sync.Producer(stage.bootstrap)
    producer.send(topic, b"1")
    producer.close()
    assert values_of(stage, topic) == [b"1"]


def sending_and_waiting(stage: Stage, cut: Cut) -> None:
    topic = topic_of(stage)
    with sync.Producer(stage.bootstrap) as producer:
        interrupted(cut, lambda: producer.send_and_wait(topic, b"1"))
        producer.send_and_wait(topic, b"2")
    # It was handed over before it was waited for.
    assert values_of(stage, topic) == [b"1", b"2"]


def flushing(stage: Stage, cut: Cut) -> None:
    topic = topic_of(stage)
    with sync.Producer(stage.bootstrap) as producer:
        sent = [producer.send(topic, value) for value in VALUES]
        interrupted(cut, producer.flush)
        producer.flush()
        assert all(item.is_done for item in sent)
    assert values_of(stage, topic) == VALUES


def closing(stage: Stage, cut: Cut) -> None:
    topic = topic_of(stage)
    producer = sync.Producer(stage.bootstrap)
    sent = producer.send(topic, b"1")
    interrupted(cut, producer.close)
    producer.close()
    if sent.is_done:
        with suppress(ClientError):
            sent.result()
    else:
        with pytest.raises(RuntimeError, match="the client is closed"):
            sent.result()
    if not cut.was_cut:
        assert values_of(stage, topic) == [b"1"]


def committing(stage: Stage, cut: Cut) -> None:
    topic = topic_of(stage)
    with sync.Producer(stage.bootstrap, transactional_id=stage.name("t")) as producer:
        producer.begin_transaction()
        producer.send(topic, b"1")
        interrupted(cut, producer.commit_transaction)
        if cut.was_cut:
            producer.commit_transaction()
        with producer.transaction():
            producer.send(topic, b"2")
    assert values_of(stage, topic) == [b"1", b"2"]


def aborting(stage: Stage, cut: Cut) -> None:
    topic = topic_of(stage)
    with sync.Producer(stage.bootstrap, transactional_id=stage.name("t")) as producer:
        producer.begin_transaction()
        producer.send(topic, b"1")
        interrupted(cut, producer.abort_transaction)
        if cut.was_cut:
            producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"2")
    assert values_of(stage, topic) == [b"2"]


def a_whole_transaction(stage: Stage, cut: Cut) -> None:
    topic = topic_of(stage)

    def block() -> None:
        with producer.transaction():
            producer.send(topic, b"1")
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, topic)
            producer.send(topic, b"1")

    with sync.Producer(stage.bootstrap, transactional_id=stage.name("t")) as producer:
        interrupted(cut, block)
        with suppress(WrongTransactionState):
            producer.commit_transaction()
        with producer.transaction():
            producer.send(topic, b"2")
    found = values_of(stage, topic)
    assert found == [b"1", b"1", b"2"] or (cut.was_cut and found == [b"2"])


def polling(stage: Stage, cut: Cut) -> None:
    topic = filled(stage)
    settings: dict[str, Any] = {"group_id": stage.name("g"), "auto_offset_reset": "earliest"}
    with sync.Consumer(stage.bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        seen = [record.value for record in interrupted(cut, lambda: consumer.poll(5000)) or ()]
        while len(seen) < len(VALUES):
            seen += [record.value for record in consumer.poll(5000)]
    assert sorted(seen) == VALUES


def iterating(stage: Stage, cut: Cut) -> None:
    topic = filled(stage)
    settings: dict[str, Any] = {"group_id": stage.name("g"), "auto_offset_reset": "earliest"}
    with sync.Consumer(stage.bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        record = interrupted(cut, lambda: next(consumer))
        seen = [] if record is None else [record.value]
        while len(seen) < len(VALUES):
            seen.append(next(consumer).value)
    assert sorted(seen) == VALUES


def committing_offsets(stage: Stage, cut: Cut) -> None:
    topic, group = filled(stage), stage.name("g")
    with sync.Consumer(stage.bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        next(consumer)
        interrupted(cut, consumer.commit)
        consumer.commit()
        rest = [next(consumer).value for _ in VALUES[1:]]
        assert len(set(rest)) == len(VALUES) - 1


def unsubscribing(stage: Stage, cut: Cut) -> None:
    topic = filled(stage)
    settings: dict[str, Any] = {"group_id": stage.name("g"), "auto_offset_reset": "earliest"}
    with sync.Consumer(stage.bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        seen = {next(consumer).value}
        interrupted(cut, consumer.unsubscribe)
        consumer.unsubscribe()
        consumer.subscribe([topic])
        while len(seen) < len(VALUES):
            seen.add(next(consumer).value)


def closing_a_consumer(stage: Stage, cut: Cut) -> None:
    topic, group = filled(stage), stage.name("g")
    consumer = sync.Consumer(stage.bootstrap, group_id=group, auto_offset_reset="earliest")
    consumer.subscribe([topic])
    next(consumer)
    interrupted(cut, consumer.close)
    consumer.close()


def working_on_a_queue(stage: Stage, cut: Cut) -> None:
    topic, group = filled(stage), stage.loop.run(stage.share_group())
    seen: set[bytes | None] = set()

    def work() -> None:
        with sync.ShareConsumer(stage.bootstrap, group_id=group) as consumer:
            consumer.subscribe([topic])
            while len(seen) < len(VALUES):
                seen.add(next(consumer).value)
            consumer.commit()

    interrupted(cut, work)
    work()


def polling_a_queue(stage: Stage, cut: Cut) -> None:
    topic, group = filled(stage), stage.loop.run(stage.share_group())
    with sync.ShareConsumer(stage.bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        seen = [record.value for record in interrupted(cut, lambda: consumer.poll(20_000)) or ()]
        for _ in range(20):
            seen += [record.value for record in consumer.poll()]
    assert sorted(seen) == VALUES


def committing_what_was_seen_of_a_queue(stage: Stage, cut: Cut) -> None:
    topic, group = filled(stage), stage.loop.run(stage.share_group())
    seen: list[bytes] = []
    with sync.ShareConsumer(stage.bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        seen += [record.value for record in interrupted(cut, lambda: consumer.poll(20_000)) or ()]
        consumer.commit()
    with sync.ShareConsumer(stage.bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        for _ in range(20):
            seen += [record.value for record in consumer.poll()]
    assert sorted(seen) == VALUES


def test_a_transaction_without_one_of_its_records_cannot_be_committed(stage: Stage) -> None:
    topic = topic_of(stage)
    with sync.Producer(stage.bootstrap, transactional_id="t", max_request_size=1000) as producer:
        producer.begin_transaction()
        producer.send(topic, b"1")
        producer.send(topic, bytes(2000))
        with pytest.raises(WrongTransactionState, match="takes 2014 bytes"):
            producer.commit_transaction()
        producer.abort_transaction()
    assert values_of(stage, topic) == []


SCENES = (
    opening,
    sending_and_waiting,
    flushing,
    closing,
    committing,
    aborting,
    a_whole_transaction,
    polling,
    iterating,
    committing_offsets,
    unsubscribing,
    closing_a_consumer,
    working_on_a_queue,
    polling_a_queue,
    committing_what_was_seen_of_a_queue,
)


@pytest.mark.parametrize("scene", SCENES)
def test_a_blocking_call_may_be_interrupted_anywhere(scene: BlockingScene, stage: Stage) -> None:
    assert interrupt_everywhere(scene, stage) > 0
