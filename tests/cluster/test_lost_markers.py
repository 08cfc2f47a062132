"""A mirror ends its last transaction also where the target's coordinator has left out the marker."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.mirrored import ends, until
from tests.java.apache_kafka import ApacheKafka
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.transaction_talk import TransactionTalk

from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.security import cluster_for
from ottla.mirror.maker.batches import Outgoing
from ottla.mirror.maker.transactional_writer import TransactionalWriter
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.wire.error_code import ErrorCode

ID = "ottla-mirror.A->B"
TOPICS = ("told", "lost")
PARTITIONS = [TopicPartition(name, 0) for name in TOPICS]
UNVERIFIED = {"transaction.partition.verification.enable": "false"}
"""Partitions take batches of transactions that their coordinator does not know."""


ON_BOTH = pytest.mark.thorough(
    guard="tests/cluster/test_lost_markers.py::test_a_transaction_ends_where_its_marker_was_lost"
)


@pytest.fixture(params=[OttlaNode, pytest.param(ApacheKafka, marks=ON_BOTH)])
def bootstrap(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with request.param(tmp_path, UNVERIFIED) as node:
        yield node.bootstrap


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_ends_where_its_marker_was_lost(bootstrap: str, commits: bool) -> None:
    with PlainClient(bootstrap) as client:
        topics = {name: create_topic(client, name) for name in TOPICS}
        talk = TransactionTalk(client, ID, topics, version=1)
        talk.find_coordinator()
        talk.init()
        assert talk.add("told") is ErrorCode.NONE
        # Nobody announces the second partition. So the coordinator writes no marker there.
        for name in TOPICS:
            assert talk.write(name, b"before", version=9) is ErrorCode.NONE
        assert talk.end(commits).error_code is ErrorCode.NONE

        asyncio.run(_begin_and_write(bootstrap))
        before = [b"before"] if commits else []
        for name in TOPICS:
            assert talk.committed_values(name) == [*before, b"after"]


@pytest.mark.thorough(
    guard="tests/cluster/test_lost_markers.py::test_a_transaction_ends_where_its_marker_was_lost"
)
def test_a_commit_holds_in_all_partitions_if_the_broker_is_killed_meanwhile(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path) as kafka:
        with PlainClient(kafka.bootstrap) as client:
            talk = TransactionTalk(client, ID, {name: create_topic(client, name) for name in TOPICS})
            talk.find_coordinator()
            talk.init()
            for name in TOPICS:
                assert talk.write(name, b"before") is ErrorCode.NONE
            assert talk.end(True).error_code is ErrorCode.NONE
            # The answer comes before the markers are written.
            kafka.kill()
        kafka.start()
        until(lambda: len(asyncio.run(ends(kafka.bootstrap, PARTITIONS))) == len(PARTITIONS))
        asyncio.run(_begin_and_write(kafka.bootstrap))
        with PlainClient(kafka.bootstrap) as talk.client:
            for name in TOPICS:
                assert talk.committed_values(name) == [b"before", b"after"]


async def _begin_and_write(bootstrap: str) -> None:
    """Begin as a mirror does, and write to all partitions in the next transaction."""
    properties = {"bootstrap.servers": bootstrap}
    cluster = cluster_for(AdminSettings.of(properties))
    await cluster.start()
    async with Admin(bootstrap) as admin:
        writer = TransactionalWriter(cluster, properties, ID)
        await writer.start(admin, PARTITIONS)
        stable = await admin.offsets.list(dict.fromkeys(PARTITIONS, -1), read_committed=True)
        assert stable == await admin.offsets.latest(PARTITIONS)
        batch = Outgoing(build_batch([(0, 0, None, b"after", ())]), 1, ())
        await writer.write({where: [batch] for where in PARTITIONS})
        # This waits for the markers.
        await writer.start(admin, PARTITIONS)
    await cluster.close()
