"""Large batches that have to be opened: a thread opens them, and each partition keeps its order."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.data_plane import batch_of, create_topic, produce_request
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lifecycle.startup import Node
from ottla.broker.serving.dispatch import PENDING
from ottla.records.attributes import Codec
from ottla.storage.appending.validation import OPENED_AT_ONCE_BYTES
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.produce import PartitionProduceResponse

LARGE = b"v" * (OPENED_AT_ONCE_BYTES + 1)
TOPICS = {"compacted": {"cleanup.policy": "compact"}, "zstd": {"compression.type": "zstd"}}


class SlowThreads:
    """Threads that begin their work only when they are told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        self.waiting.append((work, done))

    def do_next(self) -> None:
        work, done = self.waiting.pop(0)
        error = None
        try:
            work()
        except Exception as raised:
            error = raised
        done(error)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        for name, configs in TOPICS.items():
            create_topic(client, name, 2, configs)
        create_topic(client, "plain", 1)
        yield node


@pytest.fixture
def threads(node: Node, monkeypatch: pytest.MonkeyPatch) -> SlowThreads:
    threads = SlowThreads()
    monkeypatch.setattr(node.broker.openings, "_run", threads.run)
    return threads


class Producer(InProcessClient):
    """A client that does not wait for its answers."""

    def begin(self, topic: str, batch: bytearray, partition: int = 0) -> None:
        request = produce_request(topic, batch, partition, acks=1)
        frame = bytearray(encode_request(request, api_of(ApiKey.PRODUCE), 9, 1, "p"))
        pieces = self.session.receive(memoryview(frame)[4:])
        # What lies in the buffer is overwritten by the next request of anybody.
        frame[:] = bytes(len(frame))
        if pieces is not PENDING:
            self._late.append(pieces)

    def answer(self) -> PartitionProduceResponse | None:
        self._loop.run_until_complete(asyncio.sleep(0))
        if not self._late:
            return None
        frame = b"".join(self._late.pop())
        _, response = decode_response(api_of(ApiKey.PRODUCE), 9, frame[4:])
        answer: PartitionProduceResponse = response.responses[0].partition_responses[0]
        return answer


@pytest.mark.parametrize("topic", TOPICS)
def test_what_comes_later_for_the_partition_waits_and_all_else_goes_on(
    node: Node, threads: SlowThreads, topic: str
) -> None:
    first, second, third, other, elsewhere = (Producer(node) for _ in range(5))
    first.begin(topic, batch_of(LARGE, key=b"k"))
    second.begin(topic, batch_of(b"small", b"small", key=b"k"))
    third.begin(topic, batch_of(LARGE, key=b"k"))
    other.begin(topic, batch_of(b"small", key=b"k"), partition=1)
    elsewhere.begin("plain", batch_of(LARGE))
    assert (answer := other.answer()) is not None
    assert answer.base_offset == 0
    assert (answer := elsewhere.answer()) is not None
    assert answer.base_offset == 0
    assert (first.answer(), second.answer(), third.answer()) == (None, None, None)
    assert node.broker.turns.held_bytes > 2 * len(LARGE)
    threads.do_next()
    assert (answer := first.answer()) is not None
    assert answer.base_offset == 0
    assert (answer := second.answer()) is not None
    assert answer.base_offset == 1
    assert third.answer() is None
    threads.do_next()
    assert (answer := third.answer()) is not None
    assert answer.base_offset == 3
    assert (len(node.broker.openings), node.broker.turns.held_bytes, threads.waiting) == (0, 0, [])
    # The short way is open again.
    fourth = Producer(node)
    fourth.begin(topic, batch_of(b"small", key=b"k"))
    assert (answer := fourth.answer()) is not None
    assert answer.base_offset == 4


def test_a_producers_sequence_is_checked_when_its_turn_comes(node: Node, threads: SlowThreads) -> None:
    first, second, wrong = (Producer(node) for _ in range(3))
    settings: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    first.begin("compacted", batch_of(LARGE, key=b"k", base_sequence=0, **settings))
    second.begin("compacted", batch_of(b"v", key=b"k", base_sequence=1, **settings))
    wrong.begin("compacted", batch_of(b"v", key=b"k", base_sequence=5, **settings))
    assert (second.answer(), wrong.answer()) == (None, None)
    threads.do_next()
    answers = [producer.answer() for producer in (first, second, wrong)]
    assert [answer.error_code for answer in answers if answer is not None] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ]


def test_a_batch_that_is_refused_spoils_none_behind_it(node: Node, threads: SlowThreads) -> None:
    bad, good = Producer(node), Producer(node)
    bad.begin("compacted", batch_of(LARGE))
    good.begin("compacted", batch_of(b"v", key=b"k"))
    threads.do_next()
    assert (answer := bad.answer()) is not None
    assert answer.error_code is ErrorCode.INVALID_RECORD
    assert (answer := good.answer()) is not None
    assert answer.base_offset == 0


def test_whoever_no_longer_leads_appends_nothing(node: Node, threads: SlowThreads) -> None:
    producer = Producer(node)
    producer.begin("compacted", batch_of(LARGE, key=b"k"))
    partition = node.broker.partitions.find("compacted", 0)
    assert partition is not None
    partition.leave()
    threads.do_next()
    answer = producer.answer()
    assert answer is not None
    assert answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.log_end_offset == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_records_are_compressed_anew_by_real_threads(node: Node, codec: Codec) -> None:
    client = InProcessClient(node)
    answer = client.ask(produce_request("zstd", batch_of(LARGE, key=b"k", codec=codec)), 9)
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE
    partition = node.broker.partitions.find("zstd", 0)
    assert partition is not None
    assert partition.log.size_bytes < len(LARGE) // 10
