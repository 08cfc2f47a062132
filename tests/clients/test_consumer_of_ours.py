"""Our own consumer, on Ottla and on Apache Kafka alike."""

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer as ForeignConsumer
from tests.clients.served_topics import make_topic
from tests.java.jars import java_classpath, java_command
from tests.support.plain_client import PlainClient

from ottla.client.consumer import Consumer, NoOffset, NotAssigned, OffsetAndMetadata, TopicPartition
from ottla.client.errors import ClientError, OffsetOutOfRange
from ottla.client.journey import Stage, Step
from ottla.client.producer import Producer
from ottla.client.serializers import from_json, from_text, to_json
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

WAYS = [
    {"group_protocol": "classic", "partition_assignment_strategy": "range"},
    {"group_protocol": "classic", "partition_assignment_strategy": "roundrobin"},
    {"group_protocol": "classic", "partition_assignment_strategy": "sticky"},
    {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky"},
    {"group_protocol": "consumer"},
]
JAVA_NAMES = {
    "range": "RangeAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
QUICK = {"heartbeat_interval_ms": 200, "session_timeout_ms": 10_000}


def _topic(bootstrap: str, partitions: int = 1) -> str:
    name = f"consumed-{uuid4()}"
    make_topic(bootstrap, name, partitions)
    return name


async def _fill(bootstrap: str, topic: str, values: Iterable[bytes], partition: int | None = None) -> None:
    async with Producer(bootstrap) as producer:
        for number, value in enumerate(values):
            await producer.send(topic, value, partition=partition, timestamp_ms=1000 * (number + 1))


@asynccontextmanager
async def _open(bootstrap: str, **settings: Any) -> AsyncIterator[Consumer]:
    quick = {} if settings.get("group_protocol") == "consumer" else QUICK
    async with Consumer(bootstrap, **{"auto_offset_reset": "earliest", **quick, **settings}) as consumer:
        yield consumer


async def _until(consumers: Iterable[Consumer], seen: list[bytes], done: Callable[[], bool]) -> None:
    """Poll all of them until something holds. Polling at once, since a rebalance needs all members."""
    consumers = list(consumers)
    while not done():
        for records in await asyncio.gather(*(consumer.poll(200) for consumer in consumers)):
            seen += [record.value for record in records]


def _run(body: Any) -> None:
    asyncio.run(asyncio.wait_for(body, 120))


def test_records_come_in_order_and_committed_ones_do_not_come_again(bootstrap: str) -> None:
    topic = _topic(bootstrap)

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"%d" % number for number in range(100)])
        async with _open(bootstrap, group_id=topic, enable_auto_commit=False) as consumer:
            consumer.subscribe([topic])
            seen = []
            async for record in consumer:
                seen.append(record.value)
                if record.offset == 49:
                    await consumer.commit()
                if len(seen) == 100:
                    break
            assert seen == [b"%d" % number for number in range(100)]
        async with _open(bootstrap, group_id=topic) as consumer:
            consumer.subscribe([topic])
            records = await consumer.poll(30_000)
            assert records[0].offset == 50

    _run(consume())


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("partition_assignment_strategy", "KIP-848"))
def test_members_share_the_partitions_and_take_over_from_each_other(
    bootstrap: str, way: dict[str, str]
) -> None:
    topic = _topic(bootstrap, 4)
    everything = {TopicPartition(topic, number) for number in range(4)}
    expected = [b"%d" % number for number in range(400)]

    async def consume() -> None:
        await _fill(bootstrap, topic, expected[:200])
        seen: list[bytes] = []
        async with _open(bootstrap, group_id=topic, **way) as first:
            first.subscribe([topic])
            await _until([first], seen, lambda: len(seen) >= 100)
            async with _open(bootstrap, group_id=topic, **way) as second:
                second.subscribe([topic])

                def shared() -> bool:
                    return (
                        len(first.assignment()) == len(second.assignment()) == 2
                        and first.assignment() | second.assignment() == everything
                    )

                await _until([first, second], seen, shared)
                await _fill(bootstrap, topic, expected[200:])
                await _until([first, second], seen, lambda: len(seen) >= 400)
            await _until([first], seen, lambda: first.assignment() == everything)
        # Closing and giving up both commit, so nothing came twice.
        assert sorted(seen) == sorted(expected)

    _run(consume())


def test_members_of_both_protocols_share_a_group(bootstrap: str) -> None:
    topic = _topic(bootstrap, 4)
    expected = [b"%d" % number for number in range(200)]

    async def consume() -> None:
        seen: list[bytes] = []
        async with _open(bootstrap, group_id=topic, group_protocol="classic") as old:
            old.subscribe([topic])
            await _until([old], seen, lambda: len(old.assignment()) == 4)
            async with _open(bootstrap, group_id=topic, group_protocol="consumer") as new:
                new.subscribe([topic])
                await _until([old, new], seen, lambda: len(old.assignment()) == len(new.assignment()) == 2)
                for partition in range(4):
                    await _fill(bootstrap, topic, expected[partition::4], partition)
                await _until([old, new], seen, lambda: len(seen) == 200)
        assert sorted(seen) == sorted(expected)

    _run(consume())


def test_callbacks_tell_what_comes_and_goes(bootstrap: str) -> None:
    topic = _topic(bootstrap, 2)
    told: list[tuple[str, int]] = []

    async def on_revoked(partitions: frozenset[TopicPartition]) -> None:
        told.append(("revoked", len(partitions)))

    async def consume() -> None:
        async with _open(bootstrap, group_id=topic) as consumer:
            consumer.subscribe(
                [topic],
                on_assigned=lambda partitions: told.append(("assigned", len(partitions))),
                on_revoked=on_revoked,
            )
            await _until([consumer], [], lambda: len(consumer.assignment()) == 2)
        assert told == [("assigned", 2), ("revoked", 2)]

    _run(consume())


@pytest.mark.parametrize("ending", ["close", "unsubscribe"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("partition_assignment_strategy", "KIP-848"))
def test_a_callback_may_commit_what_is_given_up_at_the_end(
    bootstrap: str, way: dict[str, str], ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = _topic(bootstrap, 2)
    committed: list[frozenset[TopicPartition]] = []

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"%d" % number for number in range(10)], partition=0)
        async with _open(bootstrap, group_id=topic, enable_auto_commit=False, **way) as consumer:

            async def on_revoked(partitions: frozenset[TopicPartition]) -> None:
                await consumer.commit()
                committed.append(partitions)

            consumer.subscribe([topic], on_revoked=on_revoked)
            seen: list[bytes] = []
            await _until([consumer], seen, lambda: len(seen) == 10)
            if ending == "unsubscribe":
                await consumer.unsubscribe()
                assert consumer.assignment() == frozenset()
        async with _open(bootstrap, group_id=topic) as other:
            found = await other.committed([TopicPartition(topic, 0)])
            assert found[TopicPartition(topic, 0)] == OffsetAndMetadata(10, "", 0)

    _run(consume())
    assert committed == [frozenset({TopicPartition(topic, 0), TopicPartition(topic, 1)})]
    assert [record.message for record in caplog.records if record.levelname != "DEBUG"] == []


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_member_that_was_dropped_is_told_so_when_it_closes(bootstrap: str, group_protocol: str) -> None:
    topic = _topic(bootstrap)
    told: list[str] = []

    async def consume() -> None:
        async with _open(bootstrap, group_id=topic, group_protocol=group_protocol) as consumer:
            consumer.subscribe(
                [topic],
                on_revoked=lambda _partitions: told.append("revoked"),
                on_lost=lambda _partitions: told.append("lost"),
            )
            await _until([consumer], [], lambda: bool(consumer.assignment()))
            assert consumer._membership is not None
            # As if the user had been busy for so long: the clock of the last call is turned back.
            consumer._membership.polled_at_s -= 1000
            consumer._membership._beat_soon.set()
            while not consumer._membership._lost:
                await asyncio.sleep(0.01)

    _run(consume())
    assert told == ["lost"]


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_member_that_does_not_poll_loses_its_partitions_and_comes_back(
    bootstrap: str, group_protocol: str
) -> None:
    topic = _topic(bootstrap)
    lost: list[frozenset[TopicPartition]] = []

    async def consume() -> None:
        settings = {"group_id": topic, "group_protocol": group_protocol, "max_poll_interval_ms": 10_500}
        async with _open(bootstrap, **settings) as consumer:
            consumer.subscribe([topic], on_lost=lost.append)
            await _until([consumer], [], lambda: bool(consumer.assignment()))
            # As if the user had been busy for so long: the clock of the last call is turned back.
            assert consumer._membership is not None
            consumer._membership.polled_at_s -= 11
            consumer._membership._beat_soon.set()
            while not consumer._membership._lost:
                await asyncio.sleep(0.01)
            await consumer.poll(0)
            assert lost == [frozenset({TopicPartition(topic, 0)})]
            await _until([consumer], [], lambda: bool(consumer.assignment()))

    _run(consume())


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_consumer_says_how_it_is(bootstrap: str, group_protocol: str) -> None:
    topic = _topic(bootstrap)

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"0", b"1", b"2"])
        async with _open(bootstrap, group_id=topic, group_protocol=group_protocol) as consumer:
            assert consumer.health().group is None
            consumer.subscribe([topic])
            joining = consumer.health()
            assert (joining.is_healthy, joining.is_member, joining.polled_s_ago) == (True, False, None)
            while not await consumer.poll(100, max_records=1):
                pass
            health = consumer.health()
            assert (health.is_healthy, health.is_member, health.lag) == (True, True, 2), health
            assert [(part.where, part.position, part.end) for part in health.partitions] == [
                (TopicPartition(topic, 0), 1, 3)
            ]
            assert health.fetched_s_ago is not None
            assert health.polled_s_ago is not None
            assert consumer._membership is not None
            consumer._membership.polled_at_s -= 1000
            assert "poll was not called for" in consumer.health().sentence
            consumer._membership._beat_soon.set()
            while not consumer._membership._lost:
                await asyncio.sleep(0.01)
            lost = consumer.health()
            assert not lost.is_healthy
            assert "max.poll.interval.ms is over" in (lost.last_error or "")
            await _until([consumer], [], lambda: consumer.health().is_member)
            assert consumer.health().is_healthy
        assert consumer.health().sentence == "the consumer is not open"

    _run(consume())


def test_a_consumer_says_what_keeps_it_from_reading(bootstrap: str) -> None:
    topic = _topic(bootstrap)

    async def consume() -> None:
        async with _open(bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
            while consumer.health().fetched_s_ago is None:
                await asyncio.sleep(0.01)
            sound, missing = consumer.health().partitions
            assert (sound.position, sound.end) == (0, 0)
            assert (missing.position, missing.fetched_s_ago) == (None, None)
            assert consumer.health().lag is None

    _run(consume())


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_static_member_comes_back_without_a_rebalance(bootstrap: str, group_protocol: str) -> None:
    topic = _topic(bootstrap, 2)

    async def consume() -> None:
        settings = {"group_id": topic, "group_protocol": group_protocol}
        told: list[str] = []
        async with _open(bootstrap, **settings) as other:
            other.subscribe([topic], on_revoked=lambda _partitions: told.append("revoked"))
            async with _open(bootstrap, group_instance_id="i", **settings) as member:
                member.subscribe([topic])
                await _until(
                    [other, member], [], lambda: len(other.assignment()) == len(member.assignment()) == 1
                )
                owned = member.assignment()
            told.clear()
            async with _open(bootstrap, group_instance_id="i", **settings) as member:
                member.subscribe([topic])
                await _until([other, member], [], lambda: bool(member.assignment()))
                assert member.assignment() == owned
            assert told == []

    _run(consume())


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_has_members_of_ours_and_of_librdkafka(bootstrap: str, strategy: str) -> None:
    topic = _topic(bootstrap, 4)
    expected = [b"%d" % number for number in range(200)]
    foreign = ForeignConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "partition.assignment.strategy": strategy,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 10_000,
        }
    )
    foreign.subscribe([topic])

    async def consume() -> None:
        await _fill(bootstrap, topic, expected)
        settings = {"group_id": topic, "partition_assignment_strategy": strategy}
        async with _open(bootstrap, **settings) as ours:
            ours.subscribe([topic])
            seen: list[bytes] = []
            while len(seen) < 200 or not (len(ours.assignment()) == len(foreign.assignment()) == 2):
                records, messages = await asyncio.gather(
                    ours.poll(200), asyncio.to_thread(foreign.consume, 100, 0.2)
                )
                seen += [record.value for record in records]
                seen += [message.value() for message in messages if message.error() is None]
        assert set(seen) == set(expected)

    try:
        _run(consume())
    finally:
        foreign.close()


@pytest.mark.live_oracle
@pytest.mark.parametrize(("strategy", "java_name"), JAVA_NAMES.items())
@pytest.mark.thorough(
    guard="tests/clients/test_consumer_of_ours.py::test_a_group_has_members_of_ours_and_of_librdkafka"
)
def test_a_group_has_members_of_ours_and_of_java(
    bootstrap: str, strategy: str, java_name: str, tmp_path: Path
) -> None:
    topic = _topic(bootstrap, 4)
    expected = {partition: [b"%d-%d" % (partition, number) for number in range(50)] for partition in range(4)}
    arguments = ("--bootstrap-server", bootstrap, "--topic", topic, "--group", topic, "--from-beginning")
    properties = {
        "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{java_name}",
        "heartbeat.interval.ms": "200",
        "auto.commit.interval.ms": "200",
    }
    options = [f"--command-property={name}={value}" for name, value in properties.items()]
    command = java_command(
        java_classpath(), "org.apache.kafka.tools.consumer.ConsoleConsumer", *arguments, *options
    )
    printed = tmp_path / "printed"

    async def consume() -> None:
        settings = {"group_id": topic, "partition_assignment_strategy": strategy}
        async with _open(bootstrap, **settings) as ours:
            ours.subscribe([topic])
            await _until([ours], [], lambda: len(ours.assignment()) == 4)
            with printed.open("wb") as output:
                java = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
            seen: list[bytes] = []
            try:
                # Java's member joins, and ours leads: the partitions go over by our assignment.
                await _until([ours], seen, lambda: len(ours.assignment()) == 2)
                for partition, values in expected.items():
                    await _fill(bootstrap, topic, values, partition)
                own = [value for where in ours.assignment() for value in expected[where.partition]]
                await _until([ours], seen, lambda: len(seen) == len(own))
                assert sorted(seen) == sorted(own)
                # Java's tool commits what it printed, and prints it all when it ends.
                foreign = {TopicPartition(topic, number) for number in range(4)} - ours.assignment()
                while any(
                    item is None or item.offset < 50 for item in (await ours.committed(foreign)).values()
                ):
                    await ours.poll(200)
            finally:
                java.terminate()
                await asyncio.to_thread(java.wait, 60)
        everything = [value for values in expected.values() for value in values]
        assert sorted(seen + printed.read_bytes().split()) == sorted(everything)

    _run(consume())


def test_a_pattern_finds_topics_that_come_later(bootstrap: str) -> None:
    prefix = f"pattern-{uuid4()}"

    async def consume() -> None:
        settings = {"group_id": prefix, "metadata_max_age_ms": 200}
        async with _open(bootstrap, **settings) as consumer:
            consumer.subscribe(pattern=f"{prefix}-.*")
            await _fill(bootstrap, f"{prefix}-one", [b"1"])
            seen: list[bytes] = []
            await _until([consumer], seen, lambda: seen == [b"1"])
            await _fill(bootstrap, f"{prefix}-two", [b"2"])
            await _until([consumer], seen, lambda: seen == [b"1", b"2"])

    _run(consume())


def test_seek_pause_and_offsets(bootstrap: str) -> None:
    topic = _topic(bootstrap, 2)
    p0, p1 = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"%d" % number for number in range(10)], partition=0)
        await _fill(bootstrap, topic, [b"x"], partition=1)
        async with _open(bootstrap) as consumer:
            consumer.assign([p0, p1])
            assert await consumer.beginning_offsets([p0, p1]) == {p0: 0, p1: 0}
            assert await consumer.end_offsets([p0, p1]) == {p0: 10, p1: 1}
            found = await consumer.offsets_for_times({p0: 4500, p1: 99_999})
            assert (found[p0] or ())[:2] == (4, 5000)
            assert found[p1] is None

            consumer.pause(p1)
            consumer.seek(p0, 7)
            assert await consumer.position(p0) == 7
            seen: list[bytes] = []
            await _until([consumer], seen, lambda: len(seen) == 3)
            assert seen == [b"7", b"8", b"9"]
            assert consumer.lag(p0) == 0
            assert consumer.paused() == {p1}
            consumer.resume(p1)
            await _until([consumer], seen, lambda: seen[3:] == [b"x"])

            consumer.seek_to_beginning(p0)
            assert (await consumer.get_many(30_000))[p0][0].offset == 0
            consumer.seek_to_end()
            assert await consumer.position(p0) == 10
            with pytest.raises(NotAssigned):
                consumer.seek(TopicPartition(topic, 9), 0)

    _run(consume())


def test_commits_carry_metadata_and_leader_epoch(bootstrap: str) -> None:
    topic = _topic(bootstrap)
    where = TopicPartition(topic, 0)

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"1", b"2"])
        async with _open(bootstrap, group_id=topic, enable_auto_commit=False) as consumer:
            assert await consumer.committed([where]) == {where: None}
            await consumer.commit({where: OffsetAndMetadata(1, "half", 0)})
            assert await consumer.committed([where]) == {where: OffsetAndMetadata(1, "half", 0)}
            consumer.assign([where])
            assert (await consumer.poll(30_000))[0].offset == 1
            await consumer.commit()
            assert await consumer.committed([where]) == {where: OffsetAndMetadata(2, "", 0)}

    _run(consume())


def test_a_closed_consumer_has_committed_by_itself(bootstrap: str) -> None:
    topic = _topic(bootstrap)

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"1", b"2", b"3"])
        async with _open(bootstrap, group_id=topic) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                if record.value == b"2":
                    break
        async with _open(bootstrap, group_id=topic) as consumer:
            consumer.subscribe([topic])
            assert [record.value for record in await consumer.poll(30_000)] == [b"3"]

    _run(consume())


def test_commits_happen_in_the_background(bootstrap: str) -> None:
    topic = _topic(bootstrap)
    where = TopicPartition(topic, 0)

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"1"])
        async with _open(bootstrap, group_id=topic, auto_commit_interval_ms=50) as consumer:
            consumer.subscribe([topic])
            seen: list[bytes] = []
            await _until([consumer], seen, lambda: seen == [b"1"])
            while (await consumer.committed([where]))[where] is None:
                await consumer.poll(50)

    _run(consume())


def test_only_committed_transactions_are_seen_if_wanted(bootstrap: str) -> None:
    topic = _topic(bootstrap)
    where = TopicPartition(topic, 0)

    async def consume() -> None:
        async with Producer(bootstrap, transactional_id=topic) as producer:
            for number in range(4):
                producer.begin_transaction()
                await producer.send(topic, b"%d" % number)
                await producer.flush()
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())
            producer.begin_transaction()
            await producer.send(topic, b"open")
            await producer.flush()
            seen: list[bytes] = []
            async with _open(bootstrap, isolation_level="read_committed") as consumer:
                consumer.assign([where])
                await _until([consumer], seen, lambda: len(seen) == 2)
                # Past the records comes a marker and one that is aborted: the position goes over both.
                while await consumer.position(where) < 8:
                    assert await consumer.poll(100) == []
                assert await consumer.end_offsets([where]) == {where: 8}
            assert seen == [b"0", b"2"]
            async with _open(bootstrap) as consumer:
                consumer.assign([where])
                await _until([consumer], seen, lambda: len(seen) == 7)
            assert seen[2:] == [b"0", b"1", b"2", b"3", b"open"]
            await producer.abort_transaction()

    _run(consume())


def test_without_an_offset_the_reset_policy_decides(bootstrap: str) -> None:
    topic = _topic(bootstrap)
    where = TopicPartition(topic, 0)

    async def consume() -> None:
        async with Producer(bootstrap) as producer:
            now_ms = time.time_ns() // 1_000_000
            for age_ms in (7_200_000, 60_000):
                await producer.send(topic, b"%d" % age_ms, timestamp_ms=now_ms - age_ms)
        for policy, expected in (
            ("earliest", 0),
            ("latest", 2),
            ("by_duration:PT1H", 1),
            ("by_duration:PT1S", 2),
        ):
            async with _open(bootstrap, auto_offset_reset=policy) as consumer:
                consumer.assign([where])
                assert await consumer.position(where) == expected, policy
        async with _open(bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([where])
            with pytest.raises(NoOffset, match=r"auto\.offset\.reset is none"):
                await consumer.poll(30_000)
            consumer.seek(where, 1)
            assert [record.offset for record in await consumer.poll(30_000)] == [1]

    _run(consume())


def test_an_offset_that_is_gone_is_told_or_reset(bootstrap: str) -> None:
    topic = _topic(bootstrap)
    where = TopicPartition(topic, 0)

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"1", b"2", b"3"])
        part = DeleteRecordsPartition(partition_index=0, offset=2)
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=topic, partitions=(part,)),), timeout_ms=30_000
        )
        with PlainClient(bootstrap) as client:
            client.ask(request)
        async with _open(bootstrap) as consumer:
            consumer.assign([where])
            consumer.seek(where, 0)
            assert [record.value for record in await consumer.poll(30_000)] == [b"3"]
        async with _open(bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([where])
            consumer.seek(where, 0)
            with pytest.raises(OffsetOutOfRange, match="at 0"):
                await consumer.poll(30_000)
            consumer.seek_to_beginning()
            assert [record.value for record in await consumer.poll(30_000)] == [b"3"]

    _run(consume())


def test_values_are_deserialized_and_headers_kept(bootstrap: str) -> None:
    topic = _topic(bootstrap)

    async def consume() -> None:
        async with Producer(bootstrap, value_serializer=to_json) as producer:
            await producer.send(topic, {"amount": 7}, key="k", headers=[("h", b"1"), ("h", None)])
        async with _open(bootstrap, key_deserializer=from_text, value_deserializer=from_json) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            record = (await consumer.poll(30_000))[0]
            assert (record.key, record.value) == ("k", {"amount": 7})
            assert record.headers == (("h", b"1"), ("h", None))

    _run(consume())


def test_a_small_buffer_only_makes_it_slower(bootstrap: str) -> None:
    topic = _topic(bootstrap, 3)
    expected = [b"%d" % number * 50 for number in range(600)]

    async def consume() -> None:
        async with Producer(bootstrap, batch_size=1000) as producer:
            for number, value in enumerate(expected):
                await producer.send(topic, value, partition=number % 3)
        settings = {"fetch_buffer_bytes": 1, "max_partition_fetch_bytes": 1, "fetch_max_bytes": 1}
        async with _open(bootstrap, **settings) as consumer:
            consumer.assign(await consumer.partitions_for(topic))
            seen: list[bytes] = []
            await _until([consumer], seen, lambda: len(seen) == 600)
            assert sorted(seen) == sorted(expected)

    _run(consume())


def test_a_listener_hears_the_journey(bootstrap: str) -> None:
    topic = _topic(bootstrap)
    steps: list[Step] = []

    async def consume() -> None:
        await _fill(bootstrap, topic, [b"1", b"2"])
        settings = {"group_id": topic, "enable_auto_commit": False}
        async with _open(bootstrap, journey=steps.append, **settings) as consumer:
            consumer.subscribe([topic])
            seen: list[bytes] = []
            await _until([consumer], seen, lambda: len(seen) == 2)
            await consumer.commit()

    _run(consume())
    assert [(step.stage, step.offset) for step in steps] == [
        (Stage.FETCHED, 0),
        (Stage.HANDED_OVER, 0),
        (Stage.HANDED_OVER, 1),
        (Stage.COMMITTED, 2),
    ]


def test_read_process_and_write_are_one_step(bootstrap: str) -> None:
    source, target = _topic(bootstrap), _topic(bootstrap)

    async def copy(fail_at: int) -> None:
        async with AsyncExitStack() as stack:
            producer = await stack.enter_async_context(Producer(bootstrap, transactional_id=target))
            consumer = await stack.enter_async_context(
                _open(bootstrap, group_id=target, enable_auto_commit=False, isolation_level="read_committed")
            )
            consumer.subscribe([source])
            copied = 0
            while True:
                records = await consumer.poll(30_000, max_records=10)
                assert records, f"{copied} copied, then nothing came at {consumer.positions()}"
                async with producer.transaction():
                    for record in records:
                        await producer.send(target, b"copy of " + record.value)
                    await producer.send_offsets_to_transaction(
                        consumer.positions(), consumer.group_metadata()
                    )
                    copied += len(records)
                    if copied > fail_at:
                        raise RuntimeError("the process dies")
                if records[-1].value == b"99":
                    return

    async def run() -> None:
        await _fill(bootstrap, source, [b"%d" % number for number in range(100)])
        with pytest.raises(RuntimeError, match="dies"):
            await copy(fail_at=35)
        await copy(fail_at=1000)
        async with _open(bootstrap, isolation_level="read_committed") as reader:
            reader.assign([TopicPartition(target, 0)])
            seen: list[bytes] = []
            await _until([reader], seen, lambda: b"copy of 99" in seen)
            assert seen == [b"copy of %d" % number for number in range(100)]

    _run(run())


def test_what_cannot_be_done_is_told_in_one_sentence(ottla_bootstrap: str) -> None:
    async def consume() -> None:
        with pytest.raises(ClientError, match="the consumer is not open"):
            await Consumer(ottla_bootstrap).poll()
        async with _open(ottla_bootstrap) as consumer:
            with pytest.raises(ClientError, match=r"subscribe needs a group\.id"):
                consumer.subscribe(["t"])
            with pytest.raises(ClientError, match=r"commit needs a group\.id"):
                await consumer.commit()
        async with _open(ottla_bootstrap, group_id="g") as consumer:
            with pytest.raises(TypeError, match="a list of topics"):
                consumer.subscribe("t")
            consumer.subscribe(["t"])
            with pytest.raises(ClientError, match="unsubscribe before"):
                consumer.assign([])

    _run(consume())
