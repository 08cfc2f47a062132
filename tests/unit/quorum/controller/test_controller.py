"""The controller: what is decided, appended, committed, published and answered, and in which order."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.deciding import CLUSTER_ID, STATIC

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage
from ottla.metadata.loader import MetadataLoader
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.quorum.controller.controller import Controller
from ottla.quorum.controller.decision import RECORDS_MAX, ControllerView, Decision
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.voters import Endpoint, VoterIdentity
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.metadata_transactions import BeginTransactionRecord, EndTransactionRecord
from ottla.wire.metadata_records.topics import RemoveTopicRecord


class TooLarge(Exception):
    pass


class ListedLog:
    """A log that keeps what is appended, and commits it when told to."""

    me = VoterIdentity(0, Uuid(b"directory-000001"), Endpoint("CONTROLLER", "localhost", 9093))
    epoch = 3
    kraft_version = 1
    high_watermark = Offset(0)

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.log_end_offset = Offset(0)
        self.encoded: list[list[Any]] = []
        self.is_full = False

    def encode(
        self, records: Sequence[Any], metadata_version: int, base_offset: Offset, now_ms: int
    ) -> bytearray:
        if self.is_full:
            raise TooLarge
        self.encoded.append(list(records))
        return bytearray(b"%d" % (len(self.encoded) - 1))

    def append(self, batch: bytearray, now_ms: int) -> None:
        records = self.encoded[int(batch)]
        self.batches.append(records)
        self.log_end_offset = Offset(self.log_end_offset + len(records))


class Follower:
    """Notes what it is told."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        self.events.append(f"published {sorted(delta.features.changed)}")


class World:
    """A controller on a listed log, with a follower, and the order in which things happened."""

    def __init__(self) -> None:
        self.log = ListedLog()
        self.published = PublishedMetadata()
        self.events: list[str] = []
        self.published.listen(Follower(self.events))
        settings = ControllerSettings(0, CLUSTER_ID, STATIC)
        self.controller = Controller(
            self.log, MetadataLoader(EMPTY_IMAGE), self.published, settings, random.Random(1)
        )

    def decide(self, *features: str) -> None:
        records = [FeatureLevelRecord(name=name, feature_level=1) for name in features]
        reply = " ".join(features) or "nothing"
        self.controller.handle(
            lambda view, ask: Decision(ask, records),
            reply,
            0,
            lambda answer: self.events.append(f"answered {answer}"),
        )


def test_an_answer_comes_after_the_commit_and_after_those_who_follow() -> None:
    world = World()
    world.decide("a")
    assert world.events == []
    assert "a" in world.controller.image.features, "the next decision sees it already"
    assert world.published.image.features == {}
    world.controller.committed(Offset(0))
    assert world.events == ["published ['a']", "answered a"]
    assert world.published.image.features == {"a": 1}


def test_answers_keep_the_order_of_decisions() -> None:
    world = World()
    world.decide("a")
    world.decide("b", "c")
    world.decide("d")
    world.controller.committed(Offset(2))
    assert world.events == ["published ['a']", "answered a", "published ['b', 'c']", "answered b c"]
    world.controller.committed(Offset(3))
    assert world.events[-1] == "answered d"


def test_a_part_of_a_decision_is_not_enough() -> None:
    world = World()
    world.decide("a", "b")
    world.controller.committed(Offset(0))
    assert world.events == []


def test_a_decision_without_records_is_answered_at_once() -> None:
    world = World()
    world.decide()
    assert world.events == ["answered nothing"]


def test_a_decision_without_records_waits_for_what_it_may_rest_on() -> None:
    world = World()
    world.decide("a")
    world.decide()
    assert world.events == []
    world.controller.committed(Offset(0))
    assert world.events == ["published ['a']", "answered a", "answered nothing"]


def test_records_of_a_decision_are_one_batch() -> None:
    world = World()
    world.decide("a", "b")
    world.decide("c")
    assert [len(batch) for batch in world.log.batches] == [2, 1]


def test_more_than_a_batch_can_hold_is_split() -> None:
    world = World()
    world.decide(*(f"f{number}" for number in range(RECORDS_MAX + 5)))
    assert [len(batch) for batch in world.log.batches] == [RECORDS_MAX, 5]
    world.controller.committed(Offset(RECORDS_MAX - 1))
    assert world.events == [], "it is published as a whole"
    world.controller.committed(Offset(RECORDS_MAX + 4))
    assert len(world.published.image.features) == RECORDS_MAX + 5


def test_what_does_not_fit_into_a_batch_changes_nothing() -> None:
    world = World()
    world.log.is_full = True
    with pytest.raises(TooLarge):
        world.decide("a")
    assert world.controller.image.features == {}
    assert world.log.batches == []
    world.log.is_full = False
    world.decide("b")
    assert set(world.controller.image.features) == {"b"}


def test_records_that_do_not_fit_the_metadata_never_reach_the_log() -> None:
    world = World()
    with pytest.raises(MetadataError):
        world.controller.append([RemoveTopicRecord(topic_id=Uuid(b"no-topic-0000000"))], 0)
    assert world.log.batches == []


def test_a_transaction_in_one_batch_counts_at_once() -> None:
    world = World()
    feature = FeatureLevelRecord(name="a", feature_level=1)
    world.controller.append([BeginTransactionRecord(), feature, EndTransactionRecord()], 0)
    world.controller.committed(Offset(2))
    assert world.events == ["published ['a']"]


def test_a_decision_sees_where_its_records_will_lie() -> None:
    world = World()
    world.decide("a", "b")
    seen: list[ControllerView] = []

    def look(view: ControllerView, ask: None) -> Decision[None]:
        seen.append(view)
        return Decision(None)

    world.controller.handle(look, None, 77, lambda _: None)
    assert (seen[0].next_offset, seen[0].now_ms, seen[0].kraft_version) == (2, 77, 1)


def test_what_takes_long_is_prepared_before_anybody_is_told() -> None:
    world = World()
    preparing: list[Callable[[], None]] = []

    def prepare(_image: MetadataImage, delta: MetadataDelta, done: Callable[[], None]) -> bool:
        if "slow" in delta.features.changed:
            preparing.append(done)
            return False
        return True

    world.controller.prepare = prepare
    world.decide("quick")
    world.decide("slow")
    world.decide("later")
    world.decide()
    world.controller.committed(Offset(1))
    assert world.events == ["published ['quick']", "answered quick"]
    world.controller.committed(Offset(2))
    assert len(world.events) == 2, "what comes later keeps its place"
    assert len(preparing) == 1
    preparing.pop()()
    assert world.events[2:] == [
        "published ['slow']",
        "answered slow",
        "published ['later']",
        "answered later",
        "answered nothing",
    ]
