"""Letters go to the leader of their topic, wherever it is: each once, or the record stays in flight."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler
from tests.unit.broker.share.test_dead_letters import _Partition

from ottla.broker.share.dead_letters import DeadLetters
from ottla.broker.share.letters import USED_UP, DeadRun, Queue, iter_letter_batches, iter_letters
from ottla.coordination.share.state import ShareKey
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.runtime.connections.peer import Unanswered
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ottla.wire.messages.produce import (
    ACKS_LETTERS,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

NAME = "dlq.orders"
LETTERS_ID = Uuid(b"the letters of u")
KEY = ShareKey("g", Uuid(b"the orders of us"), 7)
QUEUE = Queue(KEY, "orders", 1)
RUNS = (DeadRun(0, 2, 5, USED_UP),)
SOURCE: Any = _Partition(build_batch([Record(number, 1, b"k", b"v%d" % number, ()) for number in range(3)]))


class World:
    """A node with a share partition, whose letters belong to node 3."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000)
        self.scheduler = ManualScheduler(self.clock)
        self.config = SimpleNamespace(
            errors_deadletterqueue_topic_name_prefix="dlq.",
            errors_deadletterqueue_auto_create_topics_enable=False,
            num_partitions=1,
            default_replication_factor=1,
        )
        self.allows_letters = True
        self.records = {number: SimpleNamespace(leader=3, leader_epoch=40 + number) for number in range(4)}
        self.topic: Any = SimpleNamespace(id=LETTERS_ID, partitions=self.records)
        self.by_key: dict[Any, Any] = {}
        self.created: list[Any] = []
        self.asked: list[tuple[int, Any]] = []
        # What the leader has, and what it says instead of taking more.
        self.stored: list[bytes] = []
        self.refusals: list[Any] = []
        self.complaints: list[str] = []
        broker: Any = self
        persister: Any = self
        self.letters = DeadLetters(broker, self.scheduler, persister)
        self.letters._lines = self  # type: ignore[assignment]

    # What the node knows

    @property
    def image(self) -> Any:
        topics = SimpleNamespace(find=lambda name: self.topic if name == NAME else None)
        return SimpleNamespace(topics=topics, topic_config=lambda _name: {}, brokers={1: 0, 3: 0})

    @property
    def configs(self) -> Any:
        config = SimpleNamespace(
            errors_deadletterqueue_group_enable=self.allows_letters, max_message_bytes=100_000
        )
        return SimpleNamespace(topic=lambda _given: config)

    @property
    def partitions(self) -> Any:
        return self

    @property
    def controller(self) -> Any:
        def ask(request: Any, _deadline: Any) -> Any:
            self.created.append(request)
            return SimpleNamespace(when_done=lambda done, failed: self.scheduler.call_later(500, done, None))

        return SimpleNamespace(ask=ask)

    def warn(self, _what: str, detail: str) -> None:
        self.complaints.append(detail)

    # What the leader of the letters says

    def ask(self, node_id: int, request: Any, answered: Callable[[Any], None]) -> None:
        self.asked.append((node_id, request))
        answer = self.refusals.pop(0) if self.refusals else self._serve(request)
        self.scheduler.call_soon(lambda: answered(answer))

    def _serve(self, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            data = request.topic_data[0].partition_data[0]
            assert data.records is not None
            self.stored.append(bytes(data.records))
            return _produced()
        if isinstance(request, FetchRequest):
            return _fetched(b"".join(_numbered(self.stored)))
        assert isinstance(request, OffsetForLeaderEpochRequest)
        return _ends(sum(len(list(iter_batch_records(each))) for each in self._batches()))

    def _batches(self) -> Any:
        return [each for stored in self.stored for each in iter_batches(memoryview(stored))]

    # What is done

    def write(self, *, is_first: bool = False, name: str = NAME, ms: int = 0) -> list[bool]:
        done: list[bool] = []
        group: Any = SimpleNamespace(
            errors_deadletterqueue_topic_name=name, errors_deadletterqueue_copy_record_enable=True
        )
        self.letters.write(QUEUE, SOURCE, RUNS, group, is_first, done.append)
        for _ in range(ms + 1):
            while self.scheduler.run_once():
                pass
            if ms:
                self.clock.advance(1)
        return done

    def written(self) -> list[bytes | None]:
        return [record.value for each in self._batches() for record in iter_batch_records(each)]


def _numbered(batches: list[bytes]) -> list[bytes]:
    """Give batches the offsets that a log would give them."""
    found, offset = [], 0
    for batch in batches:
        found.append(offset.to_bytes(8) + batch[8:])
        offset += len(list(iter_batch_records(next(iter_batches(memoryview(batch))))))
    return found


def _produced(error: ErrorCode = ErrorCode.NONE, message: str | None = None) -> ProduceResponse:
    part = PartitionProduceResponse(partition_index=3, error_code=error, base_offset=0, error_message=message)
    return ProduceResponse(
        responses=(TopicProduceResponse(topic_id=LETTERS_ID, partition_responses=(part,)),)
    )


def _fetched(records: bytes, error: ErrorCode = ErrorCode.NONE, start: int = 0) -> FetchResponse:
    data = PartitionData(
        partition_index=3,
        error_code=error,
        high_watermark=0,
        log_start_offset=start,
        records=memoryview(records),
        aborted_transactions=(),
    )
    return FetchResponse(responses=(FetchableTopicResponse(topic_id=LETTERS_ID, partitions=(data,)),))


def _ends(offset: int, error: ErrorCode = ErrorCode.NONE) -> OffsetForLeaderEpochResponse:
    end = EpochEndOffset(partition=3, error_code=error, leader_epoch=43, end_offset=offset)
    return OffsetForLeaderEpochResponse(topics=(OffsetForLeaderTopicResult(topic=NAME, partitions=(end,)),))


def _earlier(*offsets: int) -> list[bytes]:
    """Return letters that an earlier attempt has written."""
    letters = [
        letter
        for letter in iter_letters(QUEUE, SOURCE, RUNS, copies=True, now_ms=5)
        if letter.offset in offsets
    ]
    return [bytes(batch) for letter in letters for batch in iter_letter_batches([letter], 100_000)]


# Which topic


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("orders", "g: its topic orders must begin with 'dlq.'"),
        ("dlq.none", "g: create its topic dlq.none with errors.deadletterqueue.group.enable=true"),
    ],
)
def test_a_topic_that_cannot_be_used_is_told(name: str, complaint: str) -> None:
    world = World()
    assert world.write(name=name) == [False]
    assert world.complaints == [complaint]
    assert (world.asked, world.created) == ([], [])


def test_a_topic_of_the_cluster_itself_takes_no_letters() -> None:
    world = World()
    world.config.errors_deadletterqueue_topic_name_prefix = "__"
    assert world.write(name="__consumer_offsets") == [False]
    assert len(world.complaints) == 1


def test_a_topic_that_does_not_want_letters_gets_none() -> None:
    world = World()
    world.allows_letters = False
    assert world.write() == [False]
    assert world.complaints == [f"g: set errors.deadletterqueue.group.enable=true for its topic {NAME}"]


def test_a_topic_is_made_once_if_that_is_allowed() -> None:
    world = World()
    world.config.errors_deadletterqueue_auto_create_topics_enable = True
    assert world.write(name="dlq.new") == [False]
    assert world.write(name="dlq.new") == [False]
    (request,) = world.created
    assert request.topics[0].name == "dlq.new"
    assert ("errors.deadletterqueue.group.enable", "true") in [
        (each.name, each.value) for each in request.topics[0].configs
    ]
    # It failed, or nobody knows of it yet.
    world.write(name="dlq.new", ms=600)
    world.write(name="dlq.new")
    assert len(world.created) == 2
    assert world.complaints == []


# Writing


def test_letters_go_to_the_leader_of_the_partition_of_the_same_number() -> None:
    world = World()
    assert world.write() == [True]
    ((node_id, request),) = world.asked
    assert node_id == 3
    assert request.acks == ACKS_LETTERS
    (topic,) = request.topic_data
    assert (topic.name, topic.topic_id, topic.partition_data[0].partition_index) == (NAME, LETTERS_ID, 3)
    assert world.written() == [b"v0", b"v1", b"v2"]


def test_a_leader_of_another_make_gets_them_as_any_other_records() -> None:
    world = World()
    world.refusals = [_produced(ErrorCode.INVALID_REQUIRED_ACKS)]
    assert world.write() == [True]
    assert [request.acks for _, request in world.asked] == [ACKS_LETTERS, -1]
    assert world.written() == [b"v0", b"v1", b"v2"]
    # It refuses those, too: then it is asked no more.
    world = World()
    world.refusals = [_produced(ErrorCode.INVALID_REQUIRED_ACKS)] * 2
    assert world.write() == [False]


def test_without_a_leader_nobody_is_asked() -> None:
    world = World()
    world.records[3].leader = -1
    assert world.write() == [False]
    assert world.write(is_first=True) == [False]
    assert world.asked == []


@pytest.mark.parametrize(
    ("refusal", "complaints"),
    [
        (Unanswered("it is down"), []),
        (_produced(ErrorCode.NOT_LEADER_OR_FOLLOWER), []),
        (
            _produced(ErrorCode.MESSAGE_TOO_LARGE),
            [f"g: set max.message.bytes of its topic {NAME} to at least "],
        ),
        (
            _produced(ErrorCode.INVALID_RECORD, "it has no key"),
            [f"g: its topic {NAME} refuses them: it has no key"],
        ),
        (_produced(ErrorCode.POLICY_VIOLATION), [f"g: its topic {NAME} refuses them: POLICY_VIOLATION"]),
    ],
)
def test_what_is_refused_for_good_is_told_and_everything_is_tried_again(
    refusal: Any, complaints: list[str]
) -> None:
    world = World()
    world.refusals = [refusal]
    assert world.write() == [False]
    assert len(world.complaints) == len(complaints)
    assert all(found.startswith(each) for found, each in zip(world.complaints, complaints, strict=True))


# Searching


def test_after_a_load_letters_that_are_there_are_not_written_again() -> None:
    world = World()
    world.stored = _earlier(0, 2)
    assert world.write(is_first=True) == [True]
    end, fetch, produce = (request for _, request in world.asked)
    (asked,) = end.topics[0].partitions
    assert (asked.partition, asked.current_leader_epoch, asked.leader_epoch) == (3, 43, 43)
    assert fetch.topics[0].partitions[0].fetch_offset == 0
    assert isinstance(produce, ProduceRequest)
    assert sorted(value or b"" for value in world.written()) == [b"v0", b"v1", b"v2"]


def test_an_empty_topic_is_not_searched() -> None:
    world = World()
    assert world.write(is_first=True) == [True]
    assert [type(request) for _, request in world.asked] == [OffsetForLeaderEpochRequest, ProduceRequest]


def test_all_letters_there_is_nothing_to_write() -> None:
    world = World()
    world.stored = _earlier(0, 1, 2)
    assert world.write(is_first=True) == [True]
    assert not any(isinstance(request, ProduceRequest) for _, request in world.asked)


@pytest.mark.parametrize(
    "refusals",
    [
        [Unanswered("it is down")],
        [_ends(5, ErrorCode.FENCED_LEADER_EPOCH)],
        [_ends(-1)],
        [_ends(5), Unanswered("it is down")],
        [_ends(5), _fetched(b"", ErrorCode.NOT_LEADER_OR_FOLLOWER)],
        [_ends(5), FetchResponse(responses=())],
    ],
)
def test_who_cannot_search_does_not_write(refusals: list[Any]) -> None:
    world = World()
    world.refusals = refusals
    assert world.write(is_first=True) == [False]
    assert world.written() == []


def test_what_is_not_committed_yet_is_waited_for_and_given_up_at_last() -> None:
    world = World()
    world.refusals = [_ends(1), *[_fetched(b"")] * 3]
    world.stored = _earlier(0)
    assert world.write(is_first=True, ms=1000) == [True]
    assert len(world.written()) == 3

    world = World()
    world.refusals = [_ends(1), *[_fetched(b"")] * 500]
    assert world.write(is_first=True, ms=20_000) == [False]
    fetches = sum(isinstance(request, FetchRequest) for _, request in world.asked)
    assert 100 <= fetches <= 102


def test_a_search_goes_on_behind_what_retention_has_deleted() -> None:
    world = World()
    gone = replace(_fetched(b"", ErrorCode.OFFSET_OUT_OF_RANGE, start=9))
    world.refusals = [_ends(9), gone]
    assert world.write(is_first=True) == [True]
    assert world.written() == [b"v0", b"v1", b"v2"]
