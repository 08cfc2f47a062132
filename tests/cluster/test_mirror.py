"""Mirrors are exact copies, whatever is killed, and become writable by one command."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.cli.typing import fail, succeed
from tests.clients.served_topics import make_topic
from tests.java.apache_kafka import ApacheKafka
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.mirror_process import MirrorProcess
from tests.support.ottla_node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.consumer import Consumer, TopicPartition
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching import read_range
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.client.producer import Producer
from ottla.client.security import cluster_for
from ottla.records.batch import LEADER_EPOCH_OFFSET, iter_batches
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

WAIT_S = 120


@pytest.fixture
def target(tmp_path: Path) -> Iterator[OttlaNode]:
    with OttlaNode(tmp_path / "target") as node:
        yield node


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            if holds():
                return
        except ClientError:
            pass
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.1)


async def _content(bootstrap: str, where: TopicPartition) -> tuple[int, int, bytes]:
    """Return where a partition starts and ends, and its batches without their leader epochs."""
    cluster = cluster_for(AdminSettings.of({"bootstrap.servers": bootstrap}), retry_timeout_ms=10_000)
    await cluster.start()
    try:
        start = (await list_offsets(cluster, {where: EARLIEST}))[where].offset
        end = (await list_offsets(cluster, {where: LATEST}))[where].offset
        content = bytearray()
        async for piece in read_range(cluster, where, start, end):
            for batch in iter_batches(piece.records):
                view = batch.view
                content += bytes(view[:LEADER_EPOCH_OFFSET]) + bytes(view[LEADER_EPOCH_OFFSET + 4 :])
        return start, end, bytes(content)
    finally:
        await cluster.close()


def _are_equal(source: str, target: str, where: TopicPartition) -> bool:
    return asyncio.run(_content(source, where)) == asyncio.run(_content(target, where))


async def _write_all_kinds(bootstrap: str, topic: str) -> None:
    """Write plain and compressed batches, and transactions of which one is aborted and one stays open."""
    async with Producer(bootstrap, compression_type="lz4") as producer:
        for number in range(50):
            await producer.send(topic, b"plain-%d" % number, partition=0, headers=[("h", b"1")])
    producer = Producer(bootstrap, transactional_id=topic)
    await producer.start()
    for commits in (True, False):
        producer.begin_transaction()
        await producer.send(topic, b"committed" if commits else b"aborted", partition=0)
        await (producer.commit_transaction() if commits else producer.abort_transaction())
    producer.begin_transaction()
    await producer.send(topic, b"open", partition=0)
    await producer.flush()
    # It is left as a crash leaves it: nobody ends the transaction.
    await producer._cluster.close()


async def _committed_values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    where = TopicPartition(topic, 0)
    async with Consumer(
        bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([where])
        values: list[bytes] = []
        async with asyncio.timeout(WAIT_S):
            while len(values) < count:
                values += [record.value for record in await consumer.poll(500)]
        return values


async def _commit(bootstrap: str, topic: str, offset: int) -> None:
    async with Admin(bootstrap) as admin:
        (await admin.group_offsets.alter(topic, {TopicPartition(topic, 0): offset})).check()


async def _committed(bootstrap: str, topic: str) -> int | None:
    async with Admin(bootstrap) as admin:
        found = (await admin.group_offsets.list(topic)).get(TopicPartition(topic, 0))
        return None if found is None else found.offset


async def _config(bootstrap: str, topic: str, name: str) -> str | None:
    async with Admin(bootstrap) as admin:
        return (await admin.configs.describe(ResourceType.TOPIC, topic))[name].value


async def _refused(bootstrap: str, topic: str) -> ErrorCode:
    async with Producer(bootstrap, delivery_timeout_ms=10_000, request_timeout_ms=5_000) as producer:
        try:
            await (await producer.send(topic, b"mine", partition=0))
        except BrokerError as error:
            return error.error_code
    return ErrorCode.NONE


def _check_copy_of_everything(source: str, target: str, root: Path, topic: str) -> None:
    where = TopicPartition(topic, 0)
    make_topic(source, topic, 2)
    asyncio.run(_write_all_kinds(source, topic))
    asyncio.run(_commit(source, topic, 17))
    succeed("config", "set", "topic", topic, "retention.ms=7777777777", bootstrap=source)
    with MirrorProcess(root, source, target, "--topics", f"{topic}.*", "--source-name", "there"):
        _until(lambda: _are_equal(source, target, where))
        _until(lambda: asyncio.run(_committed(target, topic)) == 17)
        assert asyncio.run(_config(target, topic, "retention.ms")) == "7777777777"
        assert asyncio.run(_refused(target, topic)) is ErrorCode.POLICY_VIOLATION
        # What comes later follows: configs, partitions, topics, and what is removed.
        succeed("config", "set", "topic", topic, "retention.ms=6666666666", bootstrap=source)
        succeed("topic", "alter", topic, "--partitions=3", bootstrap=source)
        make_topic(source, f"{topic}-new")
        asyncio.run(_remove_before(source, where, 10))
        _until(lambda: asyncio.run(_config(target, topic, "retention.ms")) == "6666666666")
        _until(lambda: _are_equal(source, target, TopicPartition(topic, 2)))
        _until(lambda: _are_equal(source, target, TopicPartition(f"{topic}-new", 0)))
        _until(lambda: asyncio.run(_content(target, where))[0] == 10)
        _until(lambda: _seen_ends(target, topic) == {0, 1, 2})
        assert "COPIED TO" in succeed("mirror", "status", bootstrap=target).out
        (link,) = succeed("mirror", "status", "--json", bootstrap=target).data["links"]
        assert (link["source"], link["topic_errors"]) == ("there", {})

        rows = succeed("mirror", "failover", topic, "--yes", "--json", bootstrap=target).data
        assert [(row["partition"], row["lost"], row["aborted_transactions"]) for row in rows] == [
            (0, 0, 1),
            (1, 0, 0),
            (2, 0, 0),
        ]
        assert asyncio.run(_refused(target, topic)) is ErrorCode.NONE
        values = asyncio.run(_committed_values(target, topic, 42))
        assert values == [b"plain-%d" % number for number in range(10, 50)] + [b"committed", b"mine"]
        assert "not a mirror" in fail("mirror", "failover", topic, "--yes", bootstrap=target)


async def _remove_before(bootstrap: str, where: TopicPartition, offset: int) -> None:
    async with Admin(bootstrap) as admin:
        (await admin.records.delete({where: offset})).check()


def test_a_topic_of_apache_kafka_is_copied_offset_by_offset(tmp_path: Path, target: OttlaNode) -> None:
    with ApacheKafka(tmp_path / "apache") as source:
        _check_copy_of_everything(source.bootstrap, target.bootstrap, tmp_path, "payments")


def test_a_topic_of_ottla_is_copied_offset_by_offset(tmp_path: Path, target: OttlaNode) -> None:
    with OttlaNode(tmp_path / "source") as source:
        _check_copy_of_everything(source.bootstrap, target.bootstrap, tmp_path, "payments")


def test_whatever_is_killed_the_copy_is_equal(tmp_path: Path, target: OttlaNode) -> None:
    with OttlaNode(tmp_path / "source") as source:
        make_topic(source.bootstrap, "payments", 2)
        load = AcknowledgedLoad(source.bootstrap, "payments", 2)
        mirror = MirrorProcess(tmp_path, source.bootstrap, target.bootstrap, "--topics", "payments")
        with mirror:
            try:
                for _ in range(2):
                    load.wait_for(2000)
                    mirror.end(signal.SIGKILL)
                    mirror.start()
                    load.wait_for(2000)
                    target.kill()
                    target.start()
                    load.wait_for(2000)
                    source.kill()
                    source.start()
                load.wait_for(1000)
            finally:
                load.finish()
            load.check(source.bootstrap)
            for number in range(2):
                where = TopicPartition("payments", number)
                _until(partial(_are_equal, source.bootstrap, target.bootstrap, where))
        # Every acknowledged record is in the copy, at the offset that its producer was told.
        load.check(target.bootstrap)


def test_what_was_not_copied_is_stated(tmp_path: Path, target: OttlaNode) -> None:
    source = OttlaNode(tmp_path / "source")
    source.start()
    make_topic(source.bootstrap, "payments")
    mirror = MirrorProcess(tmp_path, source.bootstrap, target.bootstrap, "--topics", "payments")
    where = TopicPartition("payments", 0)
    with mirror:
        asyncio.run(_write_all_kinds(source.bootstrap, "payments"))
        _until(lambda: _are_equal(source.bootstrap, target.bootstrap, where))
        _until(lambda: _status_end(target.bootstrap) == asyncio.run(_content(target.bootstrap, where))[1])
        source.kill()
    (row,) = succeed("mirror", "failover", "--all", "--yes", "--json", bootstrap=target.bootstrap).data
    assert (row["lost"], row["aborted_transactions"]) == (0, 1)
    assert asyncio.run(_refused(target.bootstrap, "payments")) is ErrorCode.NONE


def _seen_ends(bootstrap: str, topic: str) -> set[int]:
    """Return the partitions of which the status says where they end in the source."""
    links = succeed("mirror", "status", "--json", bootstrap=bootstrap).data["links"]
    parts = [part for link in links for part in link["partitions"]]
    return {part["partition"] for part in parts if part["topic"] == topic and part["source_end"] >= 0}


def _status_end(bootstrap: str) -> int:
    links = succeed("mirror", "status", "--json", bootstrap=bootstrap).data["links"]
    return max((part["source_end"] for link in links for part in link["partitions"]), default=-1)


def test_a_target_that_keeps_no_offsets_is_refused(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "source") as source, ApacheKafka(tmp_path / "apache") as target:
        make_topic(source.bootstrap, "payments")
        sentence = fail(
            "mirror", "run", "--source", source.bootstrap, "--topics", "payments", bootstrap=target.bootstrap
        )
        assert "it is not Ottla" in sentence
        assert "--way mirror-maker" in sentence
