"""Mirrors are exact copies, whatever is killed, and become writable by one command."""

import asyncio
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.cli.typing import fail, run, succeed
from tests.clients.served_topics import make_topic
from tests.cluster.mirrored import WAIT_S, are_equal, commit, committed, content, until
from tests.java.apache_kafka import ApacheKafka
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.mirror_process import MirrorProcess
from tests.support.ottla_node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer, TopicPartition
from ottla.client.errors import BrokerError
from ottla.client.producer import Producer
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode


@pytest.fixture
def target(tmp_path: Path) -> Iterator[OttlaNode]:
    with OttlaNode(tmp_path / "target") as node:
        yield node


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
    asyncio.run(commit(source, topic, where, 17))
    succeed("config", "set", "topic", topic, "retention.ms=7777777777", bootstrap=source)
    with MirrorProcess(root, source, target, "--topics", f"{topic}.*", "--source-name", "there"):
        until(lambda: are_equal(source, target, where))
        until(lambda: asyncio.run(committed(target, topic, where)) == 17)
        assert asyncio.run(_config(target, topic, "retention.ms")) == "7777777777"
        assert asyncio.run(_refused(target, topic)) is ErrorCode.POLICY_VIOLATION
        # What comes later follows: configs, partitions, topics, and what is removed.
        succeed("config", "set", "topic", topic, "retention.ms=6666666666", bootstrap=source)
        succeed("topic", "alter", topic, "--partitions=3", bootstrap=source)
        make_topic(source, f"{topic}-new")
        asyncio.run(_remove_before(source, where, 10))
        until(lambda: asyncio.run(_config(target, topic, "retention.ms")) == "6666666666")
        until(lambda: are_equal(source, target, TopicPartition(topic, 2)))
        until(lambda: are_equal(source, target, TopicPartition(f"{topic}-new", 0)))
        until(lambda: asyncio.run(content(target, where))[0] == 10)
        until(lambda: _seen_ends(target, topic) == {0, 1, 2})
        # Of a topic that is new it is not known at first how far its copy is behind.
        until(lambda: run("mirror", "status", bootstrap=target).code == 0)
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


@pytest.mark.thorough(guard="tests/cluster/test_mirror.py::test_a_topic_of_ottla_is_copied_offset_by_offset")
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
                load.wait_for(500)
                mirror.end(signal.SIGKILL)
                mirror.start()
                load.wait_for(500)
                target.kill()
                target.start()
                load.wait_for(500)
                source.kill()
                source.start()
                load.wait_for(500)
            finally:
                load.finish()
            load.check(source.bootstrap)
            for number in range(2):
                where = TopicPartition("payments", number)
                until(partial(are_equal, source.bootstrap, target.bootstrap, where))
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
        until(lambda: are_equal(source.bootstrap, target.bootstrap, where))
        until(lambda: _status_end(target.bootstrap) == asyncio.run(content(target.bootstrap, where))[1])
        _check_unknown(target.bootstrap)
        source.kill()
    (row,) = succeed("mirror", "failover", "--all", "--yes", "--json", bootstrap=target.bootstrap).data
    assert (row["lost"], row["aborted_transactions"]) == (0, 1)
    assert asyncio.run(_refused(target.bootstrap, "payments")) is ErrorCode.NONE


def _check_unknown(bootstrap: str) -> None:
    """A copy on which no mirror reports is no copy without a lag, and does not become writable unasked."""
    mark = "ottla.mirror.source=elsewhere"
    succeed("topic", "create", "unknown", "--config", mark, bootstrap=bootstrap)
    told = run("mirror", "status", bootstrap=bootstrap)
    assert told.code == 10
    assert "unknown for 1 of 1 partitions" in told.out
    as_json = run("mirror", "status", "--json", bootstrap=bootstrap)
    assert (as_json.code, as_json.data["lag"]) == (10, None)
    assert [copy["lag"] for copy in as_json.data["copies"] if copy["topic"] == "unknown"] == [None]
    assert "--accept-unknown unknown" in fail("mirror", "failover", "--all", "--yes", bootstrap=bootstrap)
    rows = succeed(
        "mirror", "failover", "unknown", "--accept-unknown", "unknown", "--yes", "--json", bootstrap=bootstrap
    ).data
    assert [row["lost"] for row in rows] == [None]
    succeed("topic", "delete", "unknown", "--yes", bootstrap=bootstrap)


def _seen_ends(bootstrap: str, topic: str) -> set[int]:
    """Return the partitions of which the status says where they end in the source."""
    links = run("mirror", "status", "--json", bootstrap=bootstrap).data["links"]
    parts = [part for link in links for part in link["partitions"]]
    return {part["partition"] for part in parts if part["topic"] == topic and part["source_end"] >= 0}


def _status_end(bootstrap: str) -> int:
    links = run("mirror", "status", "--json", bootstrap=bootstrap).data["links"]
    return max((part["source_end"] for link in links for part in link["partitions"]), default=-1)


@pytest.mark.thorough(guard="tests/cluster/test_mirror.py::test_a_topic_of_ottla_is_copied_offset_by_offset")
def test_a_target_that_keeps_no_offsets_is_refused(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "source") as source, ApacheKafka(tmp_path / "apache") as target:
        make_topic(source.bootstrap, "payments")
        sentence = fail(
            "mirror", "run", "--source", source.bootstrap, "--topics", "payments", bootstrap=target.bootstrap
        )
        assert "it is not Ottla" in sentence
        assert "--way mirror-maker" in sentence
