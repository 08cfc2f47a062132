"""Topics of many partitions: they are made beside the loop, listed, deleted, and there after a restart."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.serving.dispatch import PENDING
from ottla.model.uuid import ZERO_UUID
from ottla.wire.apis import api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import encode_request
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest

PARTITIONS = 1000


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)


def deletion(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=ZERO_UUID),), timeout_ms=30_000)


def partitions_of(client: InProcessClient, name: str) -> int:
    answer = client.ask(MetadataRequest(topics=None))
    return sum(len(topic.partitions) for topic in answer.topics if topic.name == name)


def test_a_large_topic_comes_goes_and_comes_again(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "large", PARTITIONS)
        assert partitions_of(client, "large") == PARTITIONS
        produce(client, "large", batch_of(b"old"), PARTITIONS - 1)
        assert client.ask(deletion("large")).responses[0].error_code is ErrorCode.NONE
        create_topic(client, "large", PARTITIONS)
        assert fetch_all(client, "large", PARTITIONS - 1) == []
        produce(client, "large", batch_of(b"new"), PARTITIONS - 1)
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        assert partitions_of(client, "large") == PARTITIONS
        assert fetch_all(client, "large", PARTITIONS - 1) == [b"new"]
        assert not list((tmp_path / "data").glob("*-stray"))


def test_a_topic_that_was_just_deleted_leaves_no_strays_behind(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "large", PARTITIONS)
        assert client.ask(deletion("large")).responses[0].error_code is ErrorCode.NONE
        # They are renamed in many turns of the loop, which does not turn before the node is told to stop.
        waiting = list((tmp_path / "data").glob("large-*-delete"))
        assert 0 < len(waiting) < PARTITIONS
    assert len(list((tmp_path / "data").glob("large-*-delete"))) == PARTITIONS
    with in_process_node(tmp_path):
        assert not list((tmp_path / "data").glob("*-stray"))


def test_others_are_served_while_logs_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process_node(tmp_path) as node:
        client, other = InProcessClient(node), InProcessClient(node)
        create_topic(client, "t")
        held: list[Callable[[], None]] = []
        run = node.broker.workers.run
        monkeypatch.setattr(
            node.broker.workers, "run", lambda work, done: held.append(lambda: run(work, done))
        )
        ask = creation("slow", 40)
        frame = encode_request(ask, api_of(19), 7, 1, "test")
        assert client.session.receive(memoryview(bytearray(frame))[4:]) is PENDING
        while not held:
            assert produce(other, "t", batch_of(b"v")).error_code is ErrorCode.NONE
        assert partitions_of(other, "slow") == 0, "nobody is told of what is not there yet"
        assert produce(other, "t", batch_of(b"v")).error_code is ErrorCode.NONE
        monkeypatch.undo()
        held.pop()()
        while partitions_of(other, "slow") == 0:
            assert produce(other, "t", batch_of(b"v")).error_code is ErrorCode.NONE
        assert produce(other, "slow", batch_of(b"v"), 39).error_code is ErrorCode.NONE


def test_a_log_that_was_made_by_halves_is_made_anew(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        create_topic(InProcessClient(node), "t", 3)
    metadata = tmp_path / "data" / "t-1" / "partition.metadata"
    metadata.write_bytes(b"")
    (tmp_path / "data" / "t-2" / "partition.metadata").unlink()
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        for number in range(3):
            assert produce(client, "t", batch_of(b"v"), number).error_code is ErrorCode.NONE
        assert metadata.read_bytes()
        assert not list((tmp_path / "data").glob("*-stray"))


def test_a_replica_that_cannot_be_made_holds_nobody_else_up(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "t")
        in_the_way = tmp_path / "data" / "odd-0"
        in_the_way.mkdir()
        (in_the_way / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
        create_topic(client, "odd")
        answer = produce(client, "odd", batch_of(b"v"))
        assert answer.error_code is ErrorCode.KAFKA_STORAGE_ERROR
        create_topic(client, "another")
        for topic in ("t", "another"):
            assert produce(client, topic, batch_of(b"v")).error_code is ErrorCode.NONE
