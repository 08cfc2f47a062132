"""The journal is written when there is something to write, into a partition that is the node's own."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.quorum_node import START_MS, ManualClock

from ottla.broker.deferred import Deferred
from ottla.broker.journal import writing
from ottla.broker.journal.journal import Journal
from ottla.broker.journal.writing import JournalWriter
from ottla.broker.logs.journal_room import TOPIC
from ottla.metadata.configs.load import load_node_config
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.storage.errors import LogDirectoryOffline
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.world.disk import Usage


def live(*cordoned: str, fenced: bool = False) -> Any:
    return SimpleNamespace(fenced=fenced, log_dirs=("d",), cordoned_log_dirs=cordoned)


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
        self.usage = Usage(1_000 << 20, 500 << 20)
        self.brokers: dict[int, Any] = {2: live()}
        broker: Any = SimpleNamespace(
            node_id=2,
            journal=self.journal,
            clock=ManualClock(START_MS),
            config=load_node_config(b"", {}).configs.node,
            image=SimpleNamespace(
                topics=SimpleNamespace(find=lambda _name: self.topic), brokers=self.brokers
            ),
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
            partitions={
                number: SimpleNamespace(replicas=some, isr=some, leader=some[0])
                for number, some in enumerate(replicas)
            }
        )
        if leads is not None:
            disk = SimpleNamespace(usage=lambda _path: self.usage)
            volume = SimpleNamespace(error=None, is_short=False, disk=disk, path="/data")
            log = SimpleNamespace(volume=volume)
            self.here = {leads: SimpleNamespace(is_leader=True, append=self._append, log=log)}

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


def test_where_there_are_more_nodes_two_of_them_copy_what_a_node_saw() -> None:
    world = World()
    world.brokers |= {1: live(), 3: live(fenced=True), 4: live(), 5: live("d"), 6: live()}
    world.second("topic/a")
    (ask,) = world.asked
    assert [one.broker_ids for one in ask.topics[0].assignments] == [(2, 4, 6)]


def test_a_partition_with_one_replica_gets_others_once_there_are_nodes_for_them() -> None:
    world = World()
    world.host((1,), (2,), leads=1)
    world.second("topic/a")
    assert not world.asked
    world.brokers |= {1: live(), 3: live()}
    for _ in range(writing._UPKEEP_SECONDS):
        world.second("topic/a")
    (ask,) = world.asked
    assert isinstance(ask, AlterPartitionReassignmentsRequest)
    (part,) = ask.topics[0].partitions
    assert (part.partition_index, part.replicas) == (1, (2, 3, 1))
    assert len(world.written) == 1 + writing._UPKEEP_SECONDS, "it is written meanwhile"


def test_a_node_asks_for_its_partition_back_when_it_has_all_of_it() -> None:
    world = World()
    world.host((2, 3, 1), leads=0)
    world.here[0].is_leader = False
    world.topic.partitions[0].leader = 3
    world.topic.partitions[0].isr = (3, 1)
    world.second("topic/a")
    assert not world.asked, "it is not in sync yet"
    world.topic.partitions[0].isr = (3, 1, 2)
    for _ in range(writing._UPKEEP_SECONDS):
        world.second("topic/a")
    (ask,) = world.asked
    assert isinstance(ask, ElectLeadersRequest)
    assert ask.election_type == 0
    world.here[0].is_leader = True
    world.second()
    assert len(world.written[0]) == 2 + writing._UPKEEP_SECONDS, "what happened meanwhile was kept"


def test_a_node_that_is_being_emptied_makes_no_partition() -> None:
    world = World()
    world.brokers[2] = live("d")
    world.host((1,))
    world.second("topic/a")
    assert not world.asked


def test_without_room_nothing_is_written_and_the_directory_stays(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.host((2,), leads=0)
    world.usage = Usage(1_000 << 20, 99 << 20)
    for _ in range(3):
        world.second("topic/a")
    assert not world.written
    assert caplog.text.count("there is no room for it") == 1
    world.usage = Usage(1_000 << 20, 101 << 20)
    world.second("topic/b")
    assert len(world.written) == 1


def test_what_is_more_than_a_batch_is_written_a_second_later() -> None:
    world = World()
    world.host((2,), leads=0)
    for number in range(1_500):
        world.journal.note(f"topic/{number}", "topic-created", topic="t" * 400)
    world.second()
    world.second()
    assert len(world.written) == 2
    subjects = [record.key for batch in world.written for record in batch]
    assert subjects == [b"node/2", *(f"topic/{number}".encode() for number in range(1_500))]
