"""In MirrorMaker 2's way every record comes once, to any Kafka, and its own classes read what is written."""

import asyncio
import signal
from functools import partial
from pathlib import Path

import pytest
from tests.cli.typing import run, succeed
from tests.clients.served_topics import make_topic
from tests.cluster.mirrored import commit, committed, read_values, rows_are_equal, rows_of, until
from tests.java.apache_kafka import ApacheKafka
from tests.java.mirror_maker import MirrorMaker, ask_mirror_maker
from tests.java.oracle import Oracle
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.mirror_process import MirrorProcess
from tests.support.ottla_node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.consumer import TopicPartition
from ottla.client.producer import Producer

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def _properties(a: str, b: str, **more: str) -> dict[str, str]:
    once = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage", "status.storage")
    return {
        "clusters": "A,B",
        "A.bootstrap.servers": a,
        "B.bootstrap.servers": b,
        "A->B.enabled": "true",
        "A->B.topics": "payments.*",
        "B->A.topics": "payments.*",
        "sync.group.offsets.enabled": "true",
        **{
            f"{name}.interval.seconds": "1"
            for name in ("refresh.topics", "refresh.groups", "emit.checkpoints", "sync.group.offsets")
        },
        "A.consumer.isolation.level": "read_committed",
        "replication.factor": "1",
        "config.storage.replication.factor": "1",
        **{f"{name}.replication.factor": "1" for name in once},
        **more,
    }


def _are_equal(source: str, topic: str, target: str, copy: str, partition: int = 0) -> bool:
    return rows_are_equal(source, TopicPartition(topic, partition), target, TopicPartition(copy, partition))


async def _write(bootstrap: str, topic: str, first: int, count: int, codec: str = "none") -> None:
    async with Producer(bootstrap, compression_type=codec) as producer:
        for number in range(first, first + count):
            headers = [("h", b"1"), ("n", None)] if number % 3 == 0 else []
            value = None if number % 5 == 0 else b"%d" % number
            await producer.send(topic, value, key=b"k%d" % number, partition=0, headers=headers)


async def _write_transactions(bootstrap: str, topic: str) -> None:
    """Write two transactions of ten records, of which the first is aborted."""
    async with Producer(bootstrap, transactional_id=topic) as producer:
        for commits in (False, True):
            producer.begin_transaction()
            for number in range(10):
                await producer.send(topic, b"%s-%d" % (str(commits).encode(), number), partition=0)
            await producer.flush()
            await (producer.commit_transaction() if commits else producer.abort_transaction())


def _check_mirroring(a: str, b: str, root: Path) -> None:
    topic = "payments"
    where, copy = TopicPartition(topic, 0), TopicPartition(f"A.{topic}", 0)
    make_topic(a, topic, 2)
    asyncio.run(_write(a, topic, 0, 100, "lz4"))
    asyncio.run(_write_transactions(a, topic))
    asyncio.run(_write(a, topic, 100, 100))
    # In the middle, where records were aborted before, and markers lie between.
    asyncio.run(commit(a, "readers", where, 150))
    asyncio.run(commit(a, "payments-done", where, 222))
    with MirrorProcess.of_properties(root, _properties(a, b)):
        until(lambda: len(rows_of(b, copy.topic)) == 210)
        assert _are_equal(a, topic, b, copy.topic)
        for group, offset in (("readers", 150), ("payments-done", 222)):
            until(lambda group=group: asyncio.run(committed(b, group, copy)) is not None)  # type: ignore[misc]
            found = asyncio.run(committed(b, group, copy))
            assert found is not None
            left = asyncio.run(read_values(a, where, offset))
            assert asyncio.run(read_values(b, copy, found)) == left, (group, offset, found)
        # MirrorMaker's own classes read what was written: the clusters, the way, and the checkpoints.
        until(lambda: bool(rows_of(b, "A.heartbeats")))
        clusters, translated = ask_mirror_maker(
            Oracle(), ("upstream", b, "A"), ("translate", b, "A", "readers")
        )
        assert clusters == "[A] 1 [A.checkpoints.internal] [A.heartbeats, heartbeats]"
        assert translated == f"{{{copy.topic}-0={asyncio.run(committed(b, 'readers', copy))}}}"
        asyncio.run(_write(a, topic, 200, 50))
        until(lambda: len(rows_of(b, copy.topic)) == 260)
    assert _are_equal(a, topic, b, copy.topic)
    # A mirror that has started again knows what it copied before.
    asyncio.run(commit(a, "late", where, 180))
    with MirrorProcess.of_properties(root, _properties(a, b)):
        until(lambda: asyncio.run(committed(b, "late", copy)) is not None)
    found = asyncio.run(committed(b, "late", copy))
    assert found is not None
    assert asyncio.run(read_values(b, copy, found)) == asyncio.run(read_values(a, where, 180))


@pytest.mark.thorough(
    guard="tests/cluster/test_mirror_makers_way.py::test_two_clusters_mirror_each_other_without_loops"
)
def test_ottla_is_mirrored_to_apache_kafka(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "a") as a, ApacheKafka(tmp_path / "b") as b:
        _check_mirroring(a.bootstrap, b.bootstrap, tmp_path / "mirror")


@pytest.mark.thorough(
    guard="tests/cluster/test_mirror_makers_way.py::test_two_clusters_mirror_each_other_without_loops"
)
def test_apache_kafka_is_mirrored_to_ottla(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "a") as a, OttlaNode(tmp_path / "b") as b:
        _check_mirroring(a.bootstrap, b.bootstrap, tmp_path / "mirror")


def test_two_clusters_mirror_each_other_without_loops(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "a") as a, OttlaNode(tmp_path / "b") as b:
        for node, first in ((a, 0), (b, 1000)):
            make_topic(node.bootstrap, "payments")
            asyncio.run(_write(node.bootstrap, "payments", first, 20))
        both = _properties(a.bootstrap, b.bootstrap, **{"B->A.enabled": "true"})
        with MirrorProcess.of_properties(tmp_path / "mirror", both):
            until(lambda: len(rows_of(b.bootstrap, "A.payments")) == 20)
            until(lambda: len(rows_of(a.bootstrap, "B.payments")) == 20)
            # A second time round would show in another name, or in more records.
            asyncio.run(_write(a.bootstrap, "payments", 20, 5))
            until(lambda: len(rows_of(b.bootstrap, "A.payments")) == 25)
        for node, other in ((a, "B"), (b, "A")):
            named = {name for name in asyncio.run(_names(node.bootstrap)) if "payments" in name}
            assert named == {"payments", f"{other}.payments"}
        assert _are_equal(a.bootstrap, "payments", b.bootstrap, "A.payments")
        assert _are_equal(b.bootstrap, "payments", a.bootstrap, "B.payments")


@pytest.mark.thorough(
    guard="tests/simulation/mirror/test_makers_way.py::test_a_partition_that_is_refused_does_not_stop_the_others"
)
def test_a_partition_that_is_refused_does_not_stop_the_others(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "a") as a, OttlaNode(tmp_path / "b") as b:
        make_topic(b.bootstrap, "A.payments-small")
        succeed("config", "set", "topic", "A.payments-small", "max.message.bytes=100", bootstrap=b.bootstrap)
        for topic in ("payments-small", "payments"):
            make_topic(a.bootstrap, topic)
            asyncio.run(_write(a.bootstrap, topic, 0, 100))
        kept = _properties(a.bootstrap, b.bootstrap, **{"sync.topic.configs.enabled": "false"})
        with MirrorProcess.of_properties(tmp_path / "mirror", kept):
            until(lambda: _are_equal(a.bootstrap, "payments", b.bootstrap, "A.payments"))
            until(lambda: "MESSAGE_TOO_LARGE" in run("mirror", "status", bootstrap=b.bootstrap).out)
            asyncio.run(_write(a.bootstrap, "payments", 100, 100))
            until(lambda: _are_equal(a.bootstrap, "payments", b.bootstrap, "A.payments"))
            succeed(
                "config",
                "set",
                "topic",
                "A.payments-small",
                "max.message.bytes=1000000",
                bootstrap=b.bootstrap,
            )
            until(lambda: _are_equal(a.bootstrap, "payments-small", b.bootstrap, "A.payments-small"))


async def _names(bootstrap: str) -> list[str]:
    async with Admin(bootstrap) as admin:
        return [item.name for item in await admin.topics.list()]


@pytest.mark.parametrize(
    "policy",
    [
        "",
        pytest.param(
            IDENTITY,
            marks=pytest.mark.thorough(
                guard="tests/cluster/test_mirror_makers_way.py::test_whatever_is_killed_every_record_comes_once"
            ),
        ),
    ],
)
def test_whatever_is_killed_every_record_comes_once(tmp_path: Path, policy: str) -> None:
    with OttlaNode(tmp_path / "a") as a, OttlaNode(tmp_path / "b") as b:
        make_topic(a.bootstrap, "payments", 2)
        load = AcknowledgedLoad(a.bootstrap, "payments", 2)
        named = {"replication.policy.class": policy} if policy else {}
        mirror = MirrorProcess.of_properties(
            tmp_path / "mirror", _properties(a.bootstrap, b.bootstrap, **named)
        )
        copy = "payments" if policy else "A.payments"
        with mirror:
            try:
                load.wait_for(500)
                mirror.end(signal.SIGKILL)
                mirror.start()
                load.wait_for(500)
                b.kill()
                b.start()
                load.wait_for(500)
                a.kill()
                a.start()
                load.wait_for(500)
            finally:
                load.finish()
            load.check(a.bootstrap)
            for number in range(2):
                until(partial(_are_equal, a.bootstrap, "payments", b.bootstrap, copy, number))


@pytest.mark.thorough(guard="tests/differential/test_mirror_maker_formats.py")
def test_it_goes_on_where_mirror_maker_stopped_and_mirror_maker_where_it_stopped(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "a") as a, OttlaNode(tmp_path / "b") as b:
        make_topic(a.bootstrap, "payments")
        # A worker that could not leave in time is waited for, by default for five minutes.
        quick = {"offset.flush.interval.ms": "500", "scheduled.rebalance.max.delay.ms": "1000"}
        properties = _properties(a.bootstrap, b.bootstrap, **quick)

        def mirrored(count: int) -> None:
            until(lambda: len(rows_of(b.bootstrap, "A.payments")) >= count)

        asyncio.run(_write(a.bootstrap, "payments", 0, 100))
        with MirrorMaker(tmp_path / "first", properties):
            mirrored(100)
        asyncio.run(_write(a.bootstrap, "payments", 100, 100))
        with MirrorProcess.of_properties(tmp_path / "second", properties):
            mirrored(200)
        asyncio.run(_write(a.bootstrap, "payments", 200, 100))
        with MirrorMaker(tmp_path / "third", properties):
            mirrored(300)
        assert _are_equal(a.bootstrap, "payments", b.bootstrap, "A.payments")
