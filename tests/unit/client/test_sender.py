"""Whoever waits for a record hears of it, whatever happens to the transaction, the topic or the producer."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import pytest

from ottla.client.connection import Address
from ottla.client.errors import BrokerError, ClientError, ConnectionLost
from ottla.client.producer import sender as sender_module
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import SentRecord
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.sender import Sender
from ottla.client.producer.settings import ProducerSettings
from ottla.client.topology import PartitionView, TopicView, Topology
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1))
TOPIC_ID = Uuid(b"a topic's own id")


class Broker:
    """A connection to a broker that takes everything, unless it is told otherwise."""

    address = Address("nowhere", 1)

    def __init__(self) -> None:
        self.in_flight = 0
        self.asked = 0
        self.most_in_flight = 0
        self.fails_with: Exception | None = None
        # How many requests it answers.
        self.answers = asyncio.Semaphore(1000)

    def version_for(self, _kind: type[Any], _at_most: int | None = None) -> int:
        return 13

    def send(self, request: Any, _version: int) -> asyncio.Future[ProduceResponse]:
        if self.fails_with is not None:
            raise self.fails_with
        self.asked += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        answer = asyncio.ensure_future(self._answer(request))
        answer.add_done_callback(self._answered)
        return answer

    async def answer_to(self, answer: asyncio.Future[ProduceResponse], _what: str) -> ProduceResponse:
        return await answer

    def _answered(self, _answer: object) -> None:
        self.in_flight -= 1

    async def _answer(self, request: Any) -> ProduceResponse:
        await self.answers.acquire()
        return ProduceResponse(
            responses=tuple(
                TopicProduceResponse(
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        PartitionProduceResponse(partition_index=part.partition_index, base_offset=0)
                        for part in topic.partition_data
                    ),
                )
                for topic in request.topic_data
            )
        )


class Cluster:
    """A cluster of one broker that leads everything."""

    def __init__(self, broker: Broker) -> None:
        parts = {
            where.partition: PartitionView(where.partition, 0, 0, (0,), (0,), ErrorCode.NONE)
            for where in PARTITIONS
        }
        view = TopicView("t", TOPIC_ID, False, parts, ErrorCode.NONE)
        self.whole = Topology(
            brokers={0: Broker.address},
            topics={"t": view},
            topic_names={TOPIC_ID: "t"},
            controller_id=0,
            cluster_id="c",
        )
        self.topology = self.whole
        self._broker = broker
        self.on_connect: Callable[[], None] = lambda: None

    def open_connection(self, _node_id: int) -> Broker | None:
        try:
            self.on_connect()
        except ConnectionLost:
            return None
        return self._broker

    async def connection(self, _node_id: int) -> Broker:
        self.on_connect()
        return self._broker

    async def refresh(self, _topics: object) -> Topology:
        self.topology = self.whole
        return self.topology


class Gate:
    """A transaction, or none."""

    def __init__(self, answers: Callable[[TopicPartition], bool] | None = None) -> None:
        self.transactional_id = None if answers is None else "transactions"
        self.is_v2 = False
        self._answers = answers or (lambda _where: True)
        self._admitted: set[TopicPartition] = set()
        self.refuses_with: ClientError | None = None

    is_aborting = False

    def refusal(self) -> ClientError | None:
        return self.refuses_with

    def is_admitted(self, where: TopicPartition) -> bool:
        return self.transactional_id is None or where in self._admitted

    async def admit(self, partitions: Collection[TopicPartition]) -> None:
        for where in partitions:
            self._answers(where)
        self._admitted.update(partitions)

    def left_gap(self) -> None:
        pass

    def failed(self, error: ClientError, fatal: bool) -> None:
        pass


class World:
    """A sender, with a batch of one record for each partition."""

    def __init__(self, gate: Gate, **changed: str) -> None:
        self.broker = Broker()
        self.cluster = Cluster(self.broker)
        settings = ProducerSettings.of(
            {
                "bootstrap.servers": "nowhere:1",
                "enable.idempotence": "false",
                "max.in.flight.requests.per.connection": "1",
                "linger.ms": "0",
                "retry.backoff.ms": "1",
                **changed,
            }
        )
        identity = ProducerIdentity()

        async def acquire_identity() -> None:
            assert settings.is_idempotent, "nobody else needs one"
            identity.assume(7, 0)

        def accumulator(wake: Callable[[], None]) -> Accumulator:
            return Accumulator(1000, 0.0, 10_000, wake, asyncio.get_running_loop().time)

        self.sender = Sender(
            self.cluster,  # type: ignore[arg-type]  # all of a cluster that a sender asks for
            settings,
            accumulator,
            identity,
            gate,
            acquire_identity,
            None,
        )
        self.sent = [self.append(where) for where in PARTITIONS]
        self.sender.start()

    def append(self, where: TopicPartition, size_bytes: int = 100) -> SentRecord:
        """Append a record, which is said to be so large."""
        return SentRecord(self.sender.accumulator.append(where, 0, None, b"value", (), size_bytes), 0, 0)


def run(gate: Gate, scene: Callable[[World], Awaitable[None]], **changed: str) -> None:
    async def play() -> None:
        world = World(gate, **changed)
        try:
            await scene(world)
        finally:
            await world.sender.stop()

    asyncio.run(play())


def test_records_are_acknowledged() -> None:
    async def scene(world: World) -> None:
        await world.sender.flush()
        assert [(await sent).offset for sent in world.sent] == [0, 0]

    run(Gate(), scene)


def test_records_of_a_transaction_that_has_failed_fail_at_once() -> None:
    async def scene(world: World) -> None:
        await world.sender.flush()
        for sent in world.sent:
            with pytest.raises(BrokerError, match="TRANSACTION_ABORTABLE"):
                await sent

    gate = Gate(lambda _where: True)
    gate.refuses_with = BrokerError(ErrorCode.TRANSACTION_ABORTABLE, "another record failed")
    run(gate, scene)


def test_a_transaction_that_gets_no_partition_fails() -> None:
    def answers(where: TopicPartition) -> bool:
        if where == PARTITIONS[1]:
            raise ClientError("this one is not to be had")
        return True

    async def scene(world: World) -> None:
        for sent in world.sent:
            with pytest.raises(ClientError, match="not to be had"):
                await sent

    run(Gate(answers), scene)


def test_a_transaction_may_be_aborted_while_its_partitions_are_asked_for() -> None:
    aborted = BrokerError(ErrorCode.TRANSACTION_ABORTABLE, "aborted")
    worlds: list[World] = []

    def answers(_where: TopicPartition) -> bool:
        worlds[0].sender.fail_all(aborted)
        return True

    async def scene(world: World) -> None:
        worlds.append(world)
        for sent in world.sent:
            with pytest.raises(BrokerError, match="aborted"):
                await sent
        await world.sender.flush()

    run(Gate(answers), scene)


def test_a_topic_that_is_forgotten_meanwhile_is_learnt_again() -> None:
    async def scene(world: World) -> None:
        def forget() -> None:
            world.cluster.topology = world.cluster.whole.without(["t"])
            world.cluster.on_connect = lambda: None

        world.cluster.on_connect = forget
        await world.sender.flush()
        assert [(await sent).offset for sent in world.sent] == [0, 0]

    run(Gate(), scene)


def test_a_bug_is_told_to_whoever_waits() -> None:
    async def scene(world: World) -> None:
        world.broker.fails_with = RuntimeError("a bug")
        for sent in world.sent:
            with pytest.raises(ClientError, match="a bug"):
                await sent
        await world.sender.flush()

    run(Gate(), scene)


def test_a_producer_that_stops_tells_whoever_waits() -> None:
    async def scene(world: World) -> None:
        await world.sender.stop()
        for sent in world.sent:
            with pytest.raises(ClientError, match="closed"):
                await sent

    run(Gate(), scene)


def test_a_connection_that_others_were_using_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "_PATIENCE_S", 0.001)

    async def scene(world: World) -> None:
        def free() -> None:
            world.broker.in_flight = 0

        def look() -> None:
            # What others asked for is answered after the sender has looked, and nobody tells it.
            asyncio.get_running_loop().call_soon(free)

        world.broker.in_flight = 1
        world.cluster.on_connect = look
        assert [(await sent).offset for sent in world.sent] == [0, 0]

    run(Gate(), scene)


def test_the_first_batch_of_a_partition_is_sent_alone() -> None:
    async def until_asked(world: World, count: int) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        assert world.broker.asked == count

    async def scene(world: World) -> None:
        world.broker.answers = asyncio.Semaphore(0)
        # Each is a batch by itself.
        sent = [*world.sent, *(world.append(PARTITIONS[0], 1000) for _ in range(3))]
        await until_asked(world, 1)
        world.broker.answers.release()
        await until_asked(world, 4)
        for _ in range(3):
            world.broker.answers.release()
        assert [(await one).offset for one in sent] == [0] * 5

    run(Gate(), scene, **{"enable.idempotence": "true", "max.in.flight.requests.per.connection": "5"})


def test_a_bug_in_sending_is_told_to_whoever_waits_and_to_who_sends_later() -> None:
    async def scene(world: World) -> None:
        def fail() -> None:
            raise RuntimeError("a bug")

        world.cluster.on_connect = fail
        for sent in world.sent:
            with pytest.raises(ClientError, match=r"cannot continue.*a bug"):
                await asyncio.wait_for(sent, 60)
        world.append(PARTITIONS[0])
        with pytest.raises(ClientError, match="stopped"):
            await world.sender.flush()

    run(Gate(), scene)


def test_a_leader_that_cannot_be_reached_is_tried_again_though_nothing_else_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender_module, "_PATIENCE_S", 3600)
    failures = 3

    async def scene(world: World) -> None:
        def refuse() -> None:
            nonlocal failures
            if failures:
                failures -= 1
                raise ConnectionLost("the leader is gone")

        world.cluster.on_connect = refuse
        assert [(await asyncio.wait_for(sent, 60)).offset for sent in world.sent] == [0, 0]

    run(Gate(), scene)
    assert not failures


def test_the_halves_of_a_batch_that_is_too_large_wait_for_what_was_sent_after_it() -> None:
    async def scene(world: World) -> None:
        requests: list[tuple[Any, asyncio.Future[ProduceResponse]]] = []

        def send(request: Any, _version: int) -> asyncio.Future[ProduceResponse]:
            answer = asyncio.get_running_loop().create_future()
            requests.append((request, answer))
            return answer

        def settle(number: int, code: ErrorCode = ErrorCode.NONE) -> None:
            request, answer = requests[number]
            answer.set_result(
                ProduceResponse(
                    responses=tuple(
                        TopicProduceResponse(
                            topic_id=topic.topic_id,
                            partition_responses=tuple(
                                PartitionProduceResponse(
                                    partition_index=part.partition_index, error_code=code, base_offset=0
                                )
                                for part in topic.partition_data
                            ),
                        )
                        for topic in request.topic_data
                    )
                )
            )

        async def turn() -> None:
            for _ in range(50):
                await asyncio.sleep(0)

        world.broker.send = send  # type: ignore[method-assign]
        await turn()
        settle(0)
        await turn()
        where = PARTITIONS[0]
        sent = [world.append(where, size_bytes) for size_bytes in (400, 400, 900)]
        await turn()
        assert len(requests) == 3, "two batches are on their way"
        settle(1, ErrorCode.MESSAGE_TOO_LARGE)
        await turn()
        assert len(requests) == 3, "the second may be refused, and would come before the halves then"
        settle(2)
        await turn()
        for half in (3, 4):
            settle(half)
            await turn()
        await asyncio.gather(*sent)

    run(
        Gate(),
        scene,
        **{"enable.idempotence": "true", "max.in.flight.requests.per.connection": "5", "linger.ms": "0"},
    )
