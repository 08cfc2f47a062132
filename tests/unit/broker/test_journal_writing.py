"""The journal is written when there is something to write, into a partition that is the node's own."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.quorum_node import START_MS, ManualClock

from ottla.broker.deferred import Deferred
from ottla.broker.journal import writing
from ottla.broker.journal.journal import Journal
from ottla.broker.journal.sampling import TOPIC
from ottla.broker.journal.writing import JournalWriter
from ottla.metadata.configs.load import load_node_config
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.storage.errors import LogDirectoryOffline
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest


class World:
    """A broker with a journal, and what its partition and its controller were asked."""

    def __init__(self) -> None:
        self.journal = Journal(ManualClock(START_MS))
        self.journal.is_on = True
        self.asked: list[Any] = []
        self.answers: list[Deferred[Any]] = []
        self.written: list[list[Any]] = []
        self.topic: Any = None
        self.here: dict[int, Any] = {}
        self.is_offline = False
        broker: Any = SimpleNamespace(
            node_id=2,
            journal=self.journal,
            clock=ManualClock(START_MS),
            config=load_node_config(b"", {}).configs.node,
            image=SimpleNamespace(topics=SimpleNamespace(find=lambda _name: self.topic)),
            partitions=SimpleNamespace(find=lambda _name, number: self.here.get(number)),
            controller=SimpleNamespace(ask=self._ask),
        )
        self.writer = JournalWriter(broker)

    def _ask(self, ask: Any) -> Deferred[Any]:
        self.asked.append(ask)
        self.answers.append(Deferred())
        return self.answers[-1]

    def _append(self, batch: memoryview, _now_ms: int, _origin: Any) -> None:
        if self.is_offline:
            raise LogDirectoryOffline("/data", "it is broken")
        self.written.append([record for one in iter_batches(batch) for record in iter_batch_records(one)])

    def host(self, *replicas: tuple[int, ...], leads: int | None = None) -> None:
        self.topic = SimpleNamespace(
            partitions={number: SimpleNamespace(replicas=some) for number, some in enumerate(replicas)}
        )
        if leads is not None:
            self.here = {leads: SimpleNamespace(is_leader=True, append=self._append)}

    def second(self, *subjects: str) -> None:
        for subject in subjects:
            self.journal.note(subject, "topic-created", topic=subject)
        self.writer.each_second()


@pytest.fixture(autouse=True)
def nothing_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "Sampler", lambda _broker: SimpleNamespace(look=lambda: None))


def test_with_nothing_to_note_nothing_is_made_or_written() -> None:
    world = World()
    world.second()
    assert not world.asked
    world.host((2,), leads=0)
    world.second()
    assert not world.written


def test_the_first_event_has_the_topic_created_and_waits_for_it() -> None:
    world = World()
    world.second("topic/a")
    world.second("topic/b")
    (ask,) = world.asked
    assert isinstance(ask, CreateTopicsRequest)
    (topic,) = ask.topics
    assert topic.name == TOPIC
    assert [one.broker_ids for one in topic.assignments] == [(2,)]
    world.host((2,), leads=0)
    world.second()
    (records,) = world.written
    assert [json.loads(record.value)["k"] for record in records] == [
        "node-started",
        "topic-created",
        "topic-created",
    ]
    world.second("topic/c")
    assert len(world.written[-1]) == 1, "that the node has started stands there once"


def test_a_node_adds_a_partition_of_its_own() -> None:
    world = World()
    world.host((0,), (1,))
    world.second("topic/a")
    (ask,) = world.asked
    assert isinstance(ask, CreatePartitionsRequest)
    (topic,) = ask.topics
    assert topic.partition_count == 3
    assert [one.broker_ids for one in topic.assignments or ()] == [(2,)]
    world.second()
    assert len(world.asked) == 1, "it is on its way"
    world.answers.pop().resolve(None)
    world.second()
    assert len(world.asked) == 2, "another node was first"
    world.answers.pop().resolve(None)
    world.host((0,), (1,), (2,))
    world.second()
    assert len(world.asked) == 2, "it is there, though this node does not lead it yet"


def test_a_disk_that_fails_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.host((2,), leads=0)
    world.is_offline = True
    for _ in range(3):
        world.second("topic/a")
    assert caplog.text.count("the journal cannot be written") == 1
