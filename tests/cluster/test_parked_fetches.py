"""Fetches that wait: answered by what is appended, by time, or because what they read is gone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch_request, produce_request, values_in
from tests.support.in_process import InProcessClient, in_process_node, loop_of

from ottla.broker.lifecycle.startup import Node
from ottla.model.uuid import ZERO_UUID
from ottla.runtime.connections.file_range import FileRange
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

HOUR_MS = 3_600_000


class Reader(InProcessClient):
    """A client whose fetch may be parked."""

    answer: Any = None

    @property
    def has_answer(self) -> bool:
        return self.answer is not None

    def begin(self, topic: str, offset: int = 0, **settings: Any) -> None:
        request = fetch_request(topic, offset, **{"max_wait_ms": HOUR_MS, **settings})
        frame = bytearray(encode_request(request, api_of(ApiKey.FETCH), 12, 1, "reader"))
        pieces = self.session.receive(memoryview(frame)[4:])
        if pieces is not None:
            self.answer = self._decode(pieces)

    def _decode(self, pieces: list[Any]) -> Any:
        frame = b"".join(_content(piece) if isinstance(piece, FileRange) else piece for piece in pieces)
        return decode_response(api_of(ApiKey.FETCH), 12, frame[4:])[1].responses[0].partitions[0]

    def turn(self, node: Node) -> None:
        """Let the loop have its turns, and see whether the answer has come."""
        for _ in range(3):
            loop_of(node).run_until_complete(asyncio.sleep(0))
        if self._late:
            self.answer = self._decode(self._late.pop())


def _content(part: FileRange) -> bytearray:
    content = bytearray(len(part))
    assert part.read_warm(memoryview(content)) == len(part), "what was just written is in memory"
    return content


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with in_process_node(tmp_path) as node:
        yield node


def test_an_append_answers_who_waits(node: Node) -> None:
    writer, reader = InProcessClient(node), Reader(node)
    create_topic(writer, "t")
    reader.begin("t")
    reader.turn(node)
    assert not reader.has_answer
    assert len(node.broker.parked_fetches) == 1

    writer.ask(produce_request("t", batch_of(b"news"), acks=1), 9)
    reader.turn(node)

    assert values_in(reader.answer.records) == [b"news"]
    assert len(node.broker.parked_fetches) == 0


def test_one_waits_until_there_are_enough_bytes(node: Node) -> None:
    writer, reader = InProcessClient(node), Reader(node)
    create_topic(writer, "t")
    batch = batch_of(b"x" * 100)
    reader.begin("t", min_bytes=2 * len(batch))
    writer.ask(produce_request("t", batch, acks=1), 9)
    reader.turn(node)
    assert not reader.has_answer

    writer.ask(produce_request("t", batch, acks=1), 9)
    reader.turn(node)

    assert len(values_in(reader.answer.records)) == 2


def test_many_appends_of_one_turn_make_one_answer(node: Node) -> None:
    writer, reader = InProcessClient(node), Reader(node)
    create_topic(writer, "t")
    reader.begin("t")
    for number in range(5):
        writer.ask(produce_request("t", batch_of(b"%d" % number), acks=1), 9)
    reader.turn(node)
    assert values_in(reader.answer.records) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_deleted_topic_answers_who_waits(node: Node) -> None:
    admin, reader = InProcessClient(node), Reader(node)
    create_topic(admin, "t")
    reader.begin("t")
    state = DeleteTopicState(name="t", topic_id=ZERO_UUID)
    admin.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=1000))
    reader.turn(node)
    assert reader.answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_who_has_left_waits_no_more(node: Node) -> None:
    admin, reader = InProcessClient(node), Reader(node)
    create_topic(admin, "t")
    reader.begin("t")
    assert len(node.broker.parked_fetches) == 1
    reader.session.close()
    assert len(node.broker.parked_fetches) == 0
    partition = node.broker.partitions.find("t", 0)
    assert partition is not None
    assert not partition.parked


def test_a_stop_answers_who_waits(node: Node) -> None:
    admin, reader = InProcessClient(node), Reader(node)
    create_topic(admin, "t")
    reader.begin("t")
    node.broker.parked_fetches.give_up_all()
    reader.turn(node)
    assert reader.answer.error_code is ErrorCode.NONE
    assert values_in(reader.answer.records) == []
