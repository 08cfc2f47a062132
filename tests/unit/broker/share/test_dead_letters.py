"""Records that a share group gives up become dead letters, each exactly once, even if the record is gone."""

import random
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from tests.support.data_plane import batch_of, fetch, produce
from tests.support.data_plane import create_topic as create
from tests.support.in_process import InProcessClient, in_process_node
from tests.support.share_member import (
    GROUP,
    SETTINGS,
    Member,
    acquired,
    configure,
    create_topic,
    describe,
    join,
    run,
    said,
    send,
    start_earliest,
)

from ottla.broker.lifecycle.startup import Node
from ottla.broker.share.letters import (
    USED_UP,
    DeadRun,
    Letterbox,
    Queue,
    iter_letter_batches,
    iter_letters,
    note_letters,
)
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.share.state import ShareKey
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.attributes import Codec
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.produce import ACKS_LETTERS


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with in_process_node(tmp_path, SETTINGS) as node:
        yield node


@pytest.fixture
def member(node: Node) -> Member:
    client = InProcessClient(node)
    topic_id = create_topic(client)
    start_earliest(client)
    join(node, client)
    send(client, *(b"%d" % number for number in range(10)))
    return Member(node, topic_id)


DEAD = "dlq.orders"


def letters(client: InProcessClient) -> list[tuple[bytes | None, dict[str, bytes | None]]]:
    data = fetch(client, DEAD, 0, max_wait_ms=0, min_bytes=0).records
    return [
        (record.value, dict(record.headers))
        for batch in iter_batches(memoryview(bytes(data or b"")))
        for record in iter_batch_records(batch)
    ]


def keep_dead_letters(client: InProcessClient) -> None:
    create(client, DEAD, configs={"errors.deadletterqueue.group.enable": "true"})
    configure(
        client, 32, GROUP, errors_deadletterqueue_topic_name=DEAD,
        errors_deadletterqueue_copy_record_enable="true", share_delivery_count_limit="2",
    )  # fmt: skip


def test_records_that_are_given_up_become_dead_letters(node: Node, member: Member) -> None:
    keep_dead_letters(member.client)
    member.fetch(max_wait_ms=5000, max_records=3, share_acquire_mode=1)
    member.acknowledge(said(0, 2, 1, 3, 2))
    answer = member.fetch(max_wait_ms=5000, max_records=1, share_acquire_mode=1)
    assert acquired(answer) == [(2, 2, 2)]
    assert member.acknowledge(said(2, 2, 2)) is ErrorCode.NONE
    while len(letters(member.client)) < 2:
        run(node)
    (rejected, why), (used_up, why_not) = letters(member.client)
    assert (rejected, used_up) == (b"1", b"2")
    assert why == {
        "__dlq.errors.topic": b"orders",
        "__dlq.errors.partition": b"0",
        "__dlq.errors.offset": b"1",
        "__dlq.errors.group": GROUP.encode(),
        "__dlq.errors.ottla.topic.id": str(member.topic_id).encode(),
        "__dlq.errors.ottla.state.epoch": b"%d" % state_epoch_of(node, member.topic_id),
        "__dlq.errors.delivery.count": b"1",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    assert why_not["__dlq.errors.message"] == b"Offset delivery count exceeded the threshold."
    while describe(member.client)[0][0] < 3:
        run(node)


def test_letters_wait_for_their_topic_and_none_is_lost_or_written_twice(tmp_path: Path) -> None:
    with in_process_node(tmp_path, SETTINGS) as node:
        client = InProcessClient(node)
        topic_id = create_topic(client)
        start_earliest(client)
        configure(client, 32, GROUP, errors_deadletterqueue_topic_name=DEAD)
        join(node, client)
        send(client, b"a", b"b", b"c")
        member = Member(node, topic_id)
        member.fetch(max_wait_ms=5000)
        assert member.acknowledge(said(0, 2, 3)) is ErrorCode.NONE
        # One letter was written, and then the node crashed: there is no topic that could be asked.
        create(client, DEAD, configs={"errors.deadletterqueue.group.enable": "true"})
        run(node, 0.01)
        produce(client, DEAD, letter_of(1, topic_id, state_epoch_of(node, topic_id)))
        assert describe(client)[0] == (0, 3), "they are in flight as long as their letters are missing"
    with in_process_node(tmp_path, SETTINGS) as node:
        client = InProcessClient(node)
        assert acquired(Member(node, topic_id).fetch(max_wait_ms=500)) == []
        while describe(client)[0] != (3, 0):
            run(node)
        offsets = [headers["__dlq.errors.offset"] for _, headers in letters(client)]
        assert sorted(offset or b"" for offset in offsets) == [b"0", b"1", b"2"]


def state_epoch_of(node: Node, topic_id: Uuid) -> int:
    """Return in which life of the queue its records are delivered."""
    key = ShareKey(GROUP, topic_id, 0)
    shard = node.broker.coordinators.shares.coordinator.shards.find(str(key))
    assert isinstance(shard, Shard)
    epoch: int = shard.state.state_epochs[key]
    return epoch


def letter_of(offset: int, topic_id: Uuid = ZERO_UUID, state_epoch: int = 0) -> bytearray:
    headers = {
        "topic": "orders",
        "partition": "0",
        "offset": str(offset),
        "group": GROUP,
        "ottla.topic.id": str(topic_id),
        "ottla.state.epoch": str(state_epoch),
    }
    named = tuple((f"__dlq.errors.{key}", text.encode()) for key, text in headers.items())
    return build_batch([Record(0, time.time_ns() // 1_000_000, None, None, named)])


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_letter_is_as_large_as_its_record(node: Node, member: Member, codec: Codec) -> None:
    keep_dead_letters(member.client)
    configure(member.client, 2, DEAD, max_message_bytes="3000")
    # The second one fits when it is compressed like its record.
    values = [random.Random(1).randbytes(20_000), b"again " * 3_000]
    produce(member.client, "orders", batch_of(*values, codec=codec))
    member.fetch(max_wait_ms=5000)
    assert member.acknowledge(said(0, 9, 1), said(10, 11, 3)) is ErrorCode.NONE
    while len(letters(member.client)) < 2:
        run(node)
    assert [value for value, _ in letters(member.client)] == values
    while describe(member.client)[0] != (12, 0):
        run(node)


def test_a_letter_waits_while_its_topic_takes_no_records_without_keys(
    node: Node, member: Member, caplog: pytest.LogCaptureFixture
) -> None:
    keep_dead_letters(member.client)
    configure(member.client, 2, DEAD, cleanup_policy="compact")
    member.fetch(max_wait_ms=5000)
    assert member.acknowledge(said(0, 9, 3)) is ErrorCode.NONE
    while "its topic dlq.orders refuses them" not in caplog.text:
        run(node)
    configure(member.client, 2, DEAD, cleanup_policy="delete")
    while describe(member.client)[0] != (10, 0):
        run(node)
    assert len(letters(member.client)) == 10


def test_records_that_are_deleted_meanwhile_still_have_letters(node: Node, member: Member) -> None:
    configure(member.client, 32, GROUP, errors_deadletterqueue_topic_name=DEAD)
    member.fetch(max_wait_ms=5000)
    assert member.acknowledge(said(2, 4, 3)) is ErrorCode.NONE
    partition = DeleteRecordsPartition(partition_index=0, offset=10)
    topic = DeleteRecordsTopic(name="orders", partitions=(partition,))
    member.client.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=5000))
    send(member.client, b"more")
    assert acquired(member.fetch(max_wait_ms=5000)) == [(10, 10, 1)], "what comes later is delivered"
    create(member.client, DEAD, configs={"errors.deadletterqueue.group.enable": "true"})
    assert member.acknowledge(said(10, 10, 1)) is ErrorCode.NONE
    while len(letters(member.client)) < 3:
        run(node)
    assert [(value, headers["__dlq.errors.offset"]) for value, headers in letters(member.client)] == [
        (None, b"2"),
        (None, b"3"),
        (None, b"4"),
    ]


def test_letters_are_written_after_the_last_member_has_left(node: Node, member: Member) -> None:
    configure(member.client, 32, GROUP, errors_deadletterqueue_topic_name=DEAD)
    member.fetch(max_wait_ms=5000)
    assert member.acknowledge(said(0, 9, 3)) is ErrorCode.NONE
    assert member.acknowledge(epoch=-1) is ErrorCode.NONE
    create(member.client, DEAD, configs={"errors.deadletterqueue.group.enable": "true"})
    while describe(member.client)[0] != (10, 0):
        run(node)
    assert len(letters(member.client)) == 10


class _Log:
    """A log with these batches, of which a read gets all."""

    log_start_offset = 0

    def __init__(self, *batches: bytearray) -> None:
        self._bytes = b"".join(batches)

    def read(self, *_arguments: Any) -> Any:
        return BytesIO(self._bytes)


class _Partition:
    topic = "orders"

    def __init__(self, *batches: bytearray) -> None:
        self.log = _Log(*batches)


def test_compacted_records_have_letters_and_markers_have_none() -> None:
    record = Record(0, 1, b"k", b"v", (("own", b"h"),))
    marker = build_batch([Record(5, 1, b"\0\0\0\1", b"\0\0\0\0\0\0", ())], base_offset=5, is_control=True)
    compacted = build_batch([record, record._replace(offset=2)], last_offset=4)
    partition: Any = _Partition(compacted, marker)
    queue = Queue(ShareKey(GROUP, Uuid(bytes(16)), 0), "orders", 1)
    found = list(iter_letters(queue, partition, [DeadRun(0, 6, 5, USED_UP)], copies=True, now_ms=7))
    assert [(letter.offset, letter.record.value) for letter in found] == [
        (0, b"v"),
        (1, None),
        (2, b"v"),
        (3, None),
        (4, None),
        (6, None),
    ]
    assert {letter.record.timestamp for letter in found} == {7}, "retention begins with the letter"
    assert found[0].record.headers[0] == ("own", b"h")


class _LettersPartition:
    """Takes letters, and counts them."""

    topic_id, index, leader_epoch = Uuid(b"letters' topic.."), 0, 0

    def __init__(self) -> None:
        self.letters = 0

    def append_letters(self, batch: memoryview, _now_ms: int) -> None:
        self.letters += sum(len(list(iter_batch_records(view))) for view in iter_batches(batch))


@pytest.mark.parametrize(
    ("again", "count"),
    [
        (Queue(ShareKey(GROUP, Uuid(b"first  of a name"), 0), "orders", 1), 1),
        (Queue(ShareKey(GROUP, Uuid(b"second of a name"), 0), "orders", 1), 2),
        (Queue(ShareKey(GROUP, Uuid(b"first  of a name"), 0), "orders", 2), 2),
    ],
    ids=["the same record", "a topic that was made again", "a group that was set back"],
)
def test_only_letters_about_the_same_record_are_the_same(again: Queue, count: int) -> None:
    source: Any = _Partition(build_batch([Record(0, 1, b"k", b"v", ())]))
    target: Any = _LettersPartition()
    letterbox = Letterbox()
    first = Queue(ShareKey(GROUP, Uuid(b"first  of a name"), 0), "orders", 1)
    for queue in (first, again):
        found = iter_letters(queue, source, [DeadRun(0, 0, 5, USED_UP)], copies=True, now_ms=7)
        for batch in iter_letter_batches(found, 10_000):
            letterbox.append(target, memoryview(batch), 7)
    assert target.letters == count


def test_a_search_for_letters_leaves_those_of_a_namesake_out() -> None:
    source: Any = _Partition(build_batch([Record(0, 1, b"k", b"v", ())]))
    first = Queue(ShareKey(GROUP, Uuid(b"first  of a name"), 0), "orders", 1)
    runs = [DeadRun(0, 0, 5, USED_UP)]
    (batch,) = iter_letter_batches(iter_letters(first, source, runs, copies=True, now_ms=7), 10_000)
    others = [
        first._replace(key=first.key._replace(topic_id=Uuid(b"second of a name"))),
        first._replace(state_epoch=2),
    ]
    for queue, expected in ((first, {0}), *((other, set[int]()) for other in others)):
        known: set[int] = set()
        note_letters(memoryview(batch), 0, queue, runs, known)
        assert known == expected


def test_the_leader_of_the_letters_drops_those_that_it_has(node: Node, member: Member) -> None:
    keep_dead_letters(member.client)
    for offset in (1, 2, 1):
        assert produce(member.client, DEAD, letter_of(offset), acks=ACKS_LETTERS).error_code is ErrorCode.NONE
    assert [headers["__dlq.errors.offset"] for _, headers in letters(member.client)] == [b"1", b"2"]
    damaged = letter_of(3)
    damaged[-1] ^= 1
    assert produce(member.client, DEAD, damaged, acks=ACKS_LETTERS).error_code is ErrorCode.CORRUPT_MESSAGE
    refused = produce(member.client, "orders", letter_of(1), acks=ACKS_LETTERS)
    assert refused.error_code is ErrorCode.INVALID_REQUIRED_ACKS
