"""Our own client when brokers are old, refuse, or lose answers. The node is made to fail on purpose."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.clients.served_topics import until

from ottla.client.admin import Admin, OutcomeUnknown
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.consumer import Consumer
from ottla.client.errors import BrokerError, ClientError, UnsupportedByBroker
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.testing.node import ThreadNode
from ottla.testing.releases import RELEASES
from ottla.wire.config_kinds import ResourceType

T = TypeVar("T")
WHERE = TopicPartition("t", 0)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ThreadNode]:
    """A node of the test's own."""
    with ThreadNode(tmp_path) as running:
        yield running


def run(node: ThreadNode, scenario: Callable[[Admin], Awaitable[T]]) -> T:
    async def inside() -> T:
        async with Admin(node.bootstrap) as admin:
            return await scenario(admin)

    return asyncio.run(inside())


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("transactional_id", [None, "tx"])
def test_records_go_round_with_old_brokers(
    node: ThreadNode, release: str, transactional_id: str | None
) -> None:
    node.faults.pretend(release)

    async def scenario() -> None:
        async with Admin(node.bootstrap) as admin:
            await admin.topics.create("t", partitions=1, replication_factor=1)
        async with Producer(node.bootstrap, transactional_id=transactional_id) as producer:
            if transactional_id is not None:
                producer.begin_transaction()
            sent = [await producer.send("t", b"%d" % number) for number in range(10)]
            await producer.flush()
            if transactional_id is not None:
                await producer.commit_transaction()
            assert [(await record).offset for record in sent] == list(range(10))
        settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "group.id": "g"}
        async with Consumer(node.bootstrap, properties=settings) as consumer:
            consumer.subscribe(["t"])
            assert [(await anext(consumer)).value for _ in range(10)] == [b"%d" % n for n in range(10)]

    asyncio.run(scenario())


@pytest.mark.parametrize("release", RELEASES)
def test_an_old_cluster_is_looked_after(node: ThreadNode, release: str) -> None:
    node.faults.pretend(release)

    async def scenario(admin: Admin) -> None:
        await admin.topics.create("t", partitions=2, replication_factor=1)
        assert [part.partition for part in (await admin.topics.describe("t")).partitions] == [0, 1]
        assert [(topic.name, topic.partitions) for topic in await admin.topics.list()] == [("t", 2)]
        (await admin.group_offsets.alter("g", {WHERE: 0})).check()
        assert (await admin.group_offsets.list("g"))[WHERE].offset == 0
        assert [line.lag for line in await admin.group_offsets.lag("g")] == [0]
        assert (await admin.groups.describe("g")).state == "Empty"
        assert [group.group_id for group in await admin.groups.list()] == ["g"]
        described = await admin.configs.describe(ResourceType.TOPIC, "t", keys=["retention.ms"])
        assert described["retention.ms"].value == "604800000"
        assert [broker.port for broker in (await admin.cluster.describe()).brokers] == [node.port]
        assert len((await admin.log_dirs.describe()).check()) == 1
        (await admin.records.truncate("t")).check()
        with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
            await admin.groups.describe("missing")
        await admin.groups.delete("g")
        await admin.topics.delete("t")

    run(node, scenario)


def test_what_an_old_broker_cannot_do_is_told(node: ThreadNode) -> None:
    node.faults.pretend("2.1")

    async def scenario(admin: Admin) -> None:
        await admin.topics.create("t", partitions=1, replication_factor=1)
        with pytest.raises(UnsupportedByBroker, match="give the numbers of partitions and replicas"):
            await admin.topics.create("u")
        with pytest.raises(UnsupportedByBroker, match="INCREMENTAL_ALTER_CONFIGS"):
            await admin.configs.alter(ResourceType.TOPIC, "t", {"retention.ms": "1"})
        with pytest.raises(UnsupportedByBroker, match="by state or type"):
            await admin.groups.list(states=["Empty"])
        with pytest.raises(UnsupportedByBroker, match="MAX_TIMESTAMP"):
            (await admin.offsets.list({WHERE: OffsetSpec.MAX_TIMESTAMP})).check()
        with pytest.raises(UnsupportedByBroker, match="DESCRIBE_QUORUM"):
            await admin.quorum.describe()

    run(node, scenario)


def test_a_static_member_of_an_old_broker_is_told(node: ThreadNode) -> None:
    node.faults.pretend("2.1")

    async def scenario() -> None:
        async with Admin(node.bootstrap) as admin:
            await admin.topics.create("t", partitions=1, replication_factor=1)
        settings = {"group.id": "g", "group.instance.id": "i"}
        async with Consumer(node.bootstrap, properties=settings) as consumer:
            consumer.subscribe(["t"])
            with pytest.raises(
                UnsupportedByBroker,
                match="supports JOIN_GROUP up to version 3, which has no group_instance_id",
            ):
                await anext(consumer)

    asyncio.run(scenario())


@pytest.mark.parametrize("release", RELEASES)
def test_a_copy_is_exactly_once_with_old_brokers(node: ThreadNode, release: str) -> None:
    node.faults.pretend(release)

    async def scenario() -> None:
        async with Admin(node.bootstrap) as admin:
            for name in ("t", "u"):
                await admin.topics.create(name, partitions=1, replication_factor=1)
        settings = {"auto.offset.reset": "earliest", "group.id": "g", "enable.auto.commit": "false"}
        async with (
            Producer(node.bootstrap, transactional_id="tx") as producer,
            Consumer(node.bootstrap, properties=settings) as consumer,
        ):
            await _in_transaction(producer, "t", b"1")
            consumer.subscribe(["t"])
            record = await anext(consumer)
            async with producer.transaction():
                await producer.send("u", record.value)
                await producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
        async with Admin(node.bootstrap) as admin:
            await until(lambda: _committed(admin, "g"), 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("release", ["2.1", "3.9"])
def test_an_abort_waits_until_the_coordinator_knows_what_to_abort(node: ThreadNode, release: str) -> None:
    node.faults.pretend(release)

    async def scenario() -> None:
        async with Admin(node.bootstrap) as admin:
            await admin.topics.create("t", partitions=1, replication_factor=1)
        async with Producer(node.bootstrap, transactional_id="tx", linger_ms=0) as producer:
            await _in_transaction(producer, "t", b"first")
            for _ in range(3):
                late = node.faults.delay("add_partitions_to_txn", 0.2, times=1)
                producer.begin_transaction()
                await producer.send("t", b"aborted")
                while not late.hits:
                    await asyncio.sleep(0.01)
                await producer.abort_transaction()
            node.faults.pretend(None)
            async with Admin(node.bootstrap) as admin:
                await until(lambda: _state(admin, "tx"), "CompleteAbort")
            node.faults.pretend(release)
            await _in_transaction(producer, "t", b"last")
        settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        async with Consumer(node.bootstrap, properties=settings) as consumer:
            consumer.assign([WHERE])
            assert [(await anext(consumer)).value for _ in range(2)] == [b"first", b"last"]

    asyncio.run(scenario())


async def _state(admin: Admin, transactional_id: str) -> str:
    return (await admin.transactions.describe(transactional_id)).state


async def _committed(admin: Admin, group: str) -> int | None:
    found = (await admin.group_offsets.list(group)).get(WHERE)
    return None if found is None else found.offset


async def _in_transaction(producer: Producer, topic: str, value: bytes) -> None:
    async with producer.transaction():
        await producer.send(topic, value)


def test_a_request_that_came_to_the_wrong_broker_goes_again(node: ThreadNode) -> None:
    async def scenario(admin: Admin) -> None:
        moved = node.faults.refuse("create_topics", "not_controller", times=2)
        await admin.topics.create("t", partitions=1)
        loading = node.faults.refuse("offset_commit", "coordinator_load_in_progress", times=2)
        (await admin.group_offsets.alter("g", {WHERE: 0})).check()
        elected = node.faults.refuse("list_offsets", "not_leader_or_follower", times=2)
        assert (await admin.offsets.latest([WHERE]))[WHERE].offset == 0
        elsewhere = node.faults.refuse("describe_groups", "not_coordinator", times=2)
        assert (await admin.groups.describe("g")).group_id == "g"
        assert [fault.hits for fault in (moved, loading, elected, elsewhere)] == [2, 2, 2, 2]

    run(node, scenario)


def test_a_question_whose_answer_was_lost_is_asked_again(node: ThreadNode) -> None:
    async def scenario(admin: Admin) -> None:
        await admin.topics.create("t", partitions=1)
        node.faults.lose_answer("list_offsets", times=1)
        assert (await admin.offsets.latest([WHERE]))[WHERE].offset == 0
        node.faults.disconnect("metadata", times=1)
        assert [topic.name for topic in await admin.topics.list()] == ["t"]
        # To set the same offset twice does no harm either.
        node.faults.lose_answer("offset_commit", times=1)
        (await admin.group_offsets.alter("g", {WHERE: 0})).check()

    run(node, scenario)


def test_a_change_whose_answer_was_lost_is_not_repeated(node: ThreadNode) -> None:
    async def scenario(admin: Admin) -> None:
        node.faults.lose_answer("create_topics", times=1)
        with pytest.raises(
            OutcomeUnknown, match="it is unknown whether CreateTopics took effect, so check before"
        ):
            await admin.topics.create("t", partitions=1)
        # It did: the connection was closed while the node was still at it.
        async with asyncio.timeout(30):
            while [topic.name for topic in await admin.topics.list()] != ["t"]:
                await asyncio.sleep(0.01)
        node.faults.disconnect("delete_topics", times=1)
        with pytest.raises(OutcomeUnknown, match="DeleteTopics"):
            await admin.topics.delete("t")
        assert [topic.name for topic in await admin.topics.list()] == ["t"], "it did not"

    run(node, scenario)


def test_a_producer_survives_refusals_and_lost_answers_without_duplicates(node: ThreadNode) -> None:
    async def scenario() -> None:
        async with Producer(node.bootstrap, linger_ms=0, batch_size=100, retry_backoff_ms=1) as producer:
            await (await producer.send("t", b"0", partition=0))
            node.faults.lose_answer("produce", times=3)
            node.faults.refuse("produce", "not_leader_or_follower", times=3)
            node.faults.disconnect("produce", times=3)
            sent = [await producer.send("t", b"%d" % number, partition=0) for number in range(1, 200)]
            assert [(await record).offset for record in sent] == list(range(1, 200))

    asyncio.run(scenario())
    assert [record.value for record in node.records("t")] == [b"%d" % number for number in range(200)]


def test_a_producer_whose_loop_is_shut_down_says_that_records_are_left(node: ThreadNode) -> None:
    """As `asyncio.run` does after an error: it ends all tasks before those who wait for them are done."""

    async def scenario(_: Admin) -> None:
        async with Producer(node.bootstrap, linger_ms=60_000) as producer:
            await producer.send("t", b"left behind")
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

    with pytest.raises(ClientError, match="records were not sent"):
        run(node, scenario)
