"""Connections break and leaders go away, and each record is written once, in order.

The brokers here remember the last five batches of a producer in each partition, as Kafka's do.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from ottla.client.connection import Address
from ottla.client.errors import ClientError, ConnectionLost, RequestTimedOut
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import SentRecord
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.sender import Sender
from ottla.client.producer.settings import ProducerSettings
from ottla.client.topology import PartitionView, TopicView, Topology
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

TOPIC_ID = Uuid(b"a topic's own id")
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class Log:
    """A partition: what was taken, and which batches of the producer are remembered."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.epochs: list[int] = []
        self._epoch = -1
        self._remembered: deque[tuple[int, int]] = deque(maxlen=5)

    def append(self, records: memoryview) -> ErrorCode:
        [batch] = iter_batches(records)
        sequence, count = batch.base_sequence, batch.count
        if sequence < 0:
            pass
        elif batch.producer_epoch != self._epoch:
            if batch.producer_epoch < self._epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            if self._epoch >= 0 and sequence:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            self._epoch = batch.producer_epoch
            self._remembered.clear()
        elif (sequence, count) in self._remembered:
            return ErrorCode.NONE
        elif self._remembered and sequence != sum(self._remembered[-1]):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self._remembered.append((sequence, count))
        self.values.append(bytes(records[-4:-1]))
        self.epochs.append(batch.producer_epoch)
        return ErrorCode.NONE


class Connection:
    """A connection to a broker that takes batches at once, and answers when it is told to."""

    address = Address("nowhere", 1)

    def __init__(self, logs: dict[TopicPartition, Log]) -> None:
        self.is_open = True
        self.waiting: deque[tuple[asyncio.Future[Any], ProduceResponse]] = deque()
        self.most_in_flight = 0
        self.refuses: dict[TopicPartition, ErrorCode] = {}
        self._logs = logs

    @property
    def in_flight(self) -> int:
        return len(self.waiting)

    def version_for(self, _kind: type[Any], _at_most: int | None = None) -> int:
        return 13

    def send(self, request: Any, _version: int) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        parts = []
        for part in request.topic_data[0].partition_data:
            where = TopicPartition("t", part.partition_index)
            code = self.refuses.get(where) or self._logs[where].append(part.records)
            parts.append(
                PartitionProduceResponse(partition_index=where.partition, error_code=code, base_offset=0)
            )
        topic = TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=tuple(parts))
        self.waiting.append((answer, ProduceResponse(responses=(topic,))))
        self.most_in_flight = max(self.most_in_flight, len(self.waiting))
        return answer

    async def answer_to(self, answer: asyncio.Future[Any], _what: str) -> Any:
        return await answer

    def answer(self, count: int = 1_000) -> None:
        while self.waiting and count:
            answer, response = self.waiting.popleft()
            answer.set_result(response)
            count -= 1

    def break_off(self) -> None:
        self.is_open = False
        while self.waiting:
            self.waiting.popleft()[0].set_exception(ConnectionLost("the connection broke"))


class Cluster:
    """Two brokers. Who leads what, a test says."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, Log] = defaultdict(Log)
        self.leaders = {FIRST: 0, SECOND: 0}
        self.connections: dict[int, Connection] = {}
        self.unreachable: set[int] = set()
        self.refreshed = 0
        self.topology = self._as_it_is()

    def _as_it_is(self) -> Topology:
        parts = {
            where.partition: PartitionView(where.partition, leader, 0, (0, 1), (0, 1), ErrorCode.NONE)
            for where, leader in self.leaders.items()
        }
        return Topology(
            brokers={0: Connection.address, 1: Connection.address},
            topics={"t": TopicView("t", TOPIC_ID, False, parts, ErrorCode.NONE)},
            topic_names={TOPIC_ID: "t"},
        )

    def open_connection(self, node_id: int) -> Connection | None:
        connection = self.connections.get(node_id)
        return connection if connection is not None and connection.is_open else None

    async def connection(self, node_id: int) -> Connection:
        await asyncio.sleep(0)
        if node_id in self.unreachable:
            raise ConnectionLost(f"broker {node_id} is gone")
        self.connections[node_id] = Connection(self.logs)
        return self.connections[node_id]

    async def refresh(self, _topics: object) -> Topology:
        await asyncio.sleep(0)
        self.refreshed += 1
        self.topology = self._as_it_is()
        return self.topology


class NoTransaction:
    transactional_id: str | None = None
    is_v2 = False
    is_aborting = False

    def refusal(self) -> ClientError | None:
        return None

    def is_admitted(self, _where: TopicPartition) -> bool:
        return True

    def failed(self, error: ClientError, fatal: bool) -> None:
        pass

    def left_gap(self) -> None:
        pass

    async def admit(self, partitions: Collection[TopicPartition]) -> None:
        raise AssertionError(partitions)


class World:
    def __init__(self, **changed: str) -> None:
        self.cluster = Cluster()
        settings = {"bootstrap.servers": "nowhere:1", "linger.ms": "0", "retry.backoff.ms": "0", **changed}
        self.identity = ProducerIdentity()

        async def acquire_identity() -> None:
            self.identity.take_another(7, 0)

        self.sender = Sender(
            self.cluster,  # type: ignore[arg-type]  # all of a cluster that a sender asks for
            ProducerSettings.of(settings),
            lambda wake: Accumulator(1000, 0.0, 1 << 20, wake, asyncio.get_running_loop().time),
            self.identity,
            NoTransaction(),
            acquire_identity,
            None,
        )
        self.sender.start()

    def send(self, where: TopicPartition, value: bytes) -> SentRecord:
        """Append a batch of one record."""
        accumulator = self.sender.accumulator
        assert accumulator.take_room(1000)
        return SentRecord(accumulator.append(where, 0, None, value, (), 1000), 0, 0)

    async def settle(self) -> None:
        """Let everything happen that needs no answer."""
        for _ in range(200):
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.001)

    async def until_written(self, sent: list[SentRecord]) -> None:
        async with asyncio.timeout(60):
            while not all(record.is_done for record in sent):
                for connection in self.cluster.connections.values():
                    connection.answer()
                await asyncio.sleep(0.001)


def run(scene: Callable[[World], Awaitable[None]], **changed: str) -> None:
    async def play() -> None:
        world = World(**changed)
        try:
            await scene(world)
        finally:
            await world.sender.stop()

    asyncio.run(play())


def values(count: int) -> list[bytes]:
    return [b"%03d" % number for number in range(count)]


async def known(world: World, *partitions: TopicPartition) -> None:
    """Let brokers know the producer, so that more than one batch may be on its way."""
    for where in partitions:
        await world.until_written([world.send(where, b"one")])


def test_a_backlog_is_written_once_though_the_connection_breaks() -> None:
    async def scene(world: World) -> None:
        await known(world, FIRST)
        sent = [world.send(FIRST, value) for value in values(39)]
        await world.settle()
        connection = world.cluster.connections[0]
        assert connection.in_flight == 5
        connection.answer(1)
        await world.settle()
        assert connection.in_flight == 5
        connection.break_off()
        await world.until_written(sent)
        assert world.cluster.logs[FIRST].values == [b"one", *values(39)]
        assert world.cluster.connections[0].most_in_flight <= 5

    run(scene)


def test_a_leader_that_is_gone_keeps_nobody_from_sending_to_the_others() -> None:
    async def scene(world: World) -> None:
        world.cluster.leaders[FIRST] = 1
        await world.cluster.refresh(())
        world.cluster.unreachable.add(1)
        waiting, sent = world.send(FIRST, b"001"), world.send(SECOND, b"002")
        await world.until_written([sent])
        assert not waiting.is_done

    run(scene)


def test_another_leader_is_looked_for_when_one_cannot_be_reached() -> None:
    async def scene(world: World) -> None:
        world.cluster.unreachable.add(0)
        sent = world.send(FIRST, b"001")
        await world.until(lambda: world.cluster.refreshed > 1)
        world.cluster.leaders[FIRST] = 1
        await world.until_written([sent])
        assert world.cluster.logs[FIRST].values == [b"001"]

    run(scene)


def test_a_batch_that_is_given_up_renews_the_epoch_of_its_own_partition_alone() -> None:
    async def scene(world: World) -> None:
        await known(world, FIRST, SECOND)
        lost, taken = world.send(FIRST, b"001"), world.send(SECOND, b"002")
        await world.settle()
        # Both were written, nobody heard of it, and for the first one it is too late to ask again.
        world.cluster.unreachable.add(0)
        batch = lost._batch
        batch.created_s -= 121
        world.cluster.connections[0].break_off()
        with pytest.raises((ConnectionLost, RequestTimedOut)):
            await asyncio.wait_for(lost.result(), 60)
        world.cluster.unreachable.clear()
        after = world.send(FIRST, b"003")
        await world.until_written([taken, after])
        assert world.cluster.logs[SECOND].values == [b"one", b"002"]
        assert world.cluster.logs[FIRST].values == [b"one", b"001", b"003"]
        assert world.cluster.logs[FIRST].epochs == [0, 0, 1]
        assert world.cluster.logs[SECOND].epochs == [0, 0]

    run(scene)


def test_what_followed_a_batch_that_was_given_up_is_asked_for_before_a_new_epoch() -> None:
    async def scene(world: World) -> None:
        await known(world, FIRST)
        lost, taken = world.send(FIRST, b"001"), world.send(FIRST, b"002")
        await world.settle()
        lost._batch.created_s -= 121
        world.cluster.connections[0].break_off()
        after = world.send(FIRST, b"003")
        await world.until_written([lost, taken, after])
        # The second one proves that the first was written, too: nothing is missing, and the epoch goes on.
        assert world.cluster.logs[FIRST].values == [b"one", b"001", b"002", b"003"]
        assert world.cluster.logs[FIRST].epochs == [0] * 4

    run(scene)


def test_a_batch_that_no_broker_got_leaves_a_gap_that_a_new_epoch_closes() -> None:
    async def scene(world: World) -> None:
        await known(world, FIRST)
        world.cluster.connections[0].refuses[FIRST] = ErrorCode.INVALID_RECORD
        refused, taken = world.send(FIRST, b"001"), world.send(FIRST, b"002")
        await world.settle()
        world.cluster.connections[0].refuses[FIRST] = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        world.cluster.connections[0].answer(1)
        await world.settle()
        with pytest.raises(ClientError, match="INVALID_RECORD"):
            await asyncio.wait_for(refused.result(), 60)
        world.cluster.connections[0].refuses.clear()
        after = world.send(FIRST, b"003")
        # It was refused as well, before the broker came to its senses.
        world.cluster.connections[0].answer()
        with pytest.raises(ClientError, match="INVALID_RECORD"):
            await asyncio.wait_for(taken.result(), 60)
        await world.until_written([after])
        assert world.cluster.logs[FIRST].values == [b"one", b"003"]
        assert world.cluster.logs[FIRST].epochs == [0, 1]

    run(scene)


def test_batches_that_came_home_go_again_in_their_order_without_numbers() -> None:
    async def scene(world: World) -> None:
        sent = [world.send(FIRST, value) for value in values(4)]
        await world.settle()
        world.cluster.logs[FIRST].values.clear()
        world.cluster.connections[0].break_off()
        await world.until_written(sent)
        assert world.cluster.logs[FIRST].values == values(4)

    run(scene, **{"enable.idempotence": "false"})


def test_metadata_is_refreshed_now_and_then_and_topics_without_use_are_forgotten() -> None:
    async def scene(world: World) -> None:
        topics = {**world.cluster.topology.topics}
        topics["idle"] = topics["t"]._replace(name="idle", topic_id=Uuid(b"another topic id"))
        world.cluster.topology = replace(world.cluster.topology, topics=topics)
        world.cluster.refresh = counting(world)  # type: ignore[method-assign,assignment]
        await known(world, FIRST)
        await world.until(lambda: "idle" not in world.cluster.topology.topics)
        world.send(FIRST, b"001")
        await world.until(lambda: {"t"} in asked)

    asked: list[object] = []

    def counting(world: World) -> Callable[[Any], Awaitable[Topology]]:
        async def refresh(topics: set[str]) -> Topology:
            asked.append(set(topics))
            return world.cluster.topology

        return refresh

    run(scene, **{"metadata.max.age.ms": "100"})


def test_a_topic_that_is_made_again_while_an_answer_is_on_its_way_does_not_know_the_producer() -> None:
    async def scene(world: World) -> None:
        await known(world, FIRST)
        first = world.send(FIRST, b"old")
        await world.settle()
        old = world.cluster.topology
        view = old.topics["t"]._replace(topic_id=Uuid(b"made once more.."))
        world.cluster.topology = replace(old, topics={"t": view}, topic_names={view.topic_id: "t"})
        connection = world.cluster.connections[0]
        connection.answer()
        await first.result()
        for value in values(2):
            world.send(FIRST, value)
        await world.settle()
        # If the first one were refused, a log that knows nobody would take the second, and then the first.
        assert connection.in_flight == 1

    run(scene)


def test_a_batch_that_may_still_come_is_not_sent_under_another_producer_id() -> None:
    async def scene(world: World) -> None:
        world.identity.take_another(7, (1 << 15) - 1)
        await known(world, FIRST)
        sent = world.send(FIRST, b"two")
        await world.settle()
        log = world.cluster.logs[FIRST]
        assert log.values == [b"one", b"two"]
        # The broker has forgotten all but a strange number. There is no epoch left to begin with.
        log._remembered.clear()
        log._remembered.append((90, 1))
        world.cluster.connections[0].break_off()
        await world.until_written([sent])
        with pytest.raises(ClientError, match="may have been written"):
            await sent.result()
        assert log.values == [b"one", b"two"]
        assert world.sender.accumulator.used_bytes == 0

    run(scene)
