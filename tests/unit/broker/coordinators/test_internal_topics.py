"""Internal topics of streams groups are created once. A failure is told for a while, and then tried again."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.group_world import ManualClock

from ottla.broker.coordinators.internal_topics import FAILURES_MAX, InternalTopics, find_topology_fault
from ottla.broker.deferred import Deferred
from ottla.coordination.group.streams.internal_topics import InternalTopic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology

PAUSE_MS = 10_000


def topic(name: str, partitions: int = 3, replication_factor: int = 0) -> InternalTopic:
    return InternalTopic(name, partitions, replication_factor, (("cleanup.policy", "compact"),))


class World:
    """The topics of a node whose controller the test plays."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.topics = InternalTopics(self.clock)
        self.asked: list[CreateTopicsRequest] = []
        self.callers: list[Any] = []
        self.answers: list[Deferred[Any]] = []
        controller = SimpleNamespace(ask=self._ask)
        self.context: Any = SimpleNamespace(
            node=SimpleNamespace(controller=controller), caller=lambda version: ("the client", version)
        )

    def _ask(self, ask: CreateTopicsRequest, caller: Any) -> Deferred[Any]:
        self.asked.append(ask)
        self.callers.append(caller)
        self.answers.append(Deferred())
        return self.answers[-1]

    def create(self, *topics: InternalTopic) -> None:
        self.topics.create({one.name: one for one in topics}, self.context, PAUSE_MS)

    def answer(self, **errors: tuple[ErrorCode, str | None]) -> None:
        results = tuple(
            CreatableTopicResult(name=name, error_code=code, error_message=message)
            for name, (code, message) in errors.items()
        )
        self.answers.pop(0).resolve(CreateTopicsResponse(topics=results))


def test_topics_are_created_in_the_name_of_the_client() -> None:
    world = World()
    world.create(topic("a", 4, 2), topic("b"))
    (ask,) = world.asked
    assert [(one.name, one.num_partitions, one.replication_factor) for one in ask.topics] == [
        ("a", 4, 2),
        ("b", 3, -1),
    ]
    assert [(one.name, one.value) for one in ask.topics[0].configs] == [("cleanup.policy", "compact")]
    assert world.callers[0][0] == "the client"


def test_what_is_on_its_way_is_not_asked_for_again() -> None:
    world = World()
    world.create(topic("a"))
    world.create(topic("a"))
    world.create(topic("a"), topic("b"))
    assert [[one.name for one in ask.topics] for ask in world.asked] == [["a"], ["b"]]


def test_what_was_created_or_lost_may_be_asked_for_again() -> None:
    world = World()
    world.create(topic("a"))
    world.answer(a=(ErrorCode.NONE, None))
    assert world.topics.failures(["a"]) == {}
    world.create(topic("a"))
    assert len(world.asked) == 2


def test_a_failure_is_told_and_rests_until_the_pause_is_over() -> None:
    world = World()
    world.create(topic("a"), topic("b"), topic("c"))
    world.answer(
        a=(ErrorCode.INVALID_REPLICATION_FACTOR, "too many replicas"),
        b=(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
        c=(ErrorCode.NONE, None),
    )
    assert world.topics.failures(["a", "b", "c", "d"]) == {
        "a": "too many replicas",
        "b": "TOPIC_AUTHORIZATION_FAILED",
    }
    world.clock.advance(PAUSE_MS - 1)
    world.create(topic("a"), topic("b"))
    assert len(world.asked) == 1
    world.clock.advance(1)
    assert world.topics.failures(["a", "b"]) == {}
    world.create(topic("a"), topic("b"))
    assert len(world.asked) == 2


def test_a_controller_that_fails_is_a_failure_of_all_topics() -> None:
    world = World()
    world.create(topic("a"), topic("b"))
    world.answers.pop().fail(RuntimeError("no controller"))
    assert world.topics.failures(["a", "b"]) == {"a": "no controller", "b": "no controller"}


def test_only_so_many_failures_are_kept_the_latest_ones() -> None:
    world = World()
    names = [f"t{number}" for number in range(FAILURES_MAX + 1)]
    refused = dict.fromkeys(names, (ErrorCode.INVALID_TOPIC_EXCEPTION, "no"))
    world.create(*map(topic, names))
    world.answer(**refused)
    assert list(world.topics.failures(names)) == names[1:]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("orders", "totals"), None),
        (
            ("__consumer_offsets", "orders"),
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        (("orders", "a b", "c!"), "Topic names a b,c! are not valid topic names."),
    ],
)
def test_a_topology_names_topics_that_may_be(names: tuple[str, ...], expected: str | None) -> None:
    first, *others = names
    subtopology = Subtopology(
        subtopology_id="0",
        source_topics=(first,),
        source_topic_regex=(),
        state_changelog_topics=tuple(
            TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=()) for name in others
        ),
        repartition_sink_topics=(),
        repartition_source_topics=(),
        copartition_groups=(),
    )
    assert find_topology_fault(Topology(epoch=0, subtopologies=(subtopology,))) == expected
