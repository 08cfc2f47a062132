"""The controller: what is decided, appended, committed, published and answered, and in which order."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.support.deciding import CLUSTER_ID, STATIC, registration
from tests.support.quorum_node import ManualClock

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage, Position
from ottla.metadata.loader import MetadataLoader
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.quorum.controller.active_controller import ActiveController, ControllerWorld
from ottla.quorum.controller.brokers.sessions import Incarnation
from ottla.quorum.controller.deciders import Decider
from ottla.quorum.controller.decision import Caller, ControllerView, Decision
from ottla.quorum.controller.mutation_quota import MUTATION_RATE, MutationQuotas
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.metadata_follower import MetadataFollower
from ottla.quorum.quorum_protocols import CommittedRecords, PreparedAppend
from ottla.quorum.voters import Endpoint, VoterIdentity
from ottla.security.principal import Principal
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsResponse
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.metadata_transactions import BeginTransactionRecord, EndTransactionRecord
from ottla.wire.metadata_records.partitions import PartitionChangeRecord, PartitionRecord
from ottla.wire.metadata_records.quotas import ClientQuotaRecord
from ottla.wire.metadata_records.quotas import EntityData as QuotaEntityData
from ottla.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord


class TooLarge(Exception):
    pass


class ListedLog:
    """A log that keeps what is appended, and commits it when told to."""

    me = VoterIdentity(0, Uuid(b"directory-000001"), Endpoint("CONTROLLER", "localhost", 9093))
    epoch = 3
    kraft_version = 1
    high_watermark = Offset(0)

    def __init__(self) -> None:
        self.appended: list[PreparedAppend] = []
        self.log_end_offset = Offset(0)
        self.is_full = False

    def find_upgrade_error(self, _level: int) -> tuple[ErrorCode, str | None]:
        return ErrorCode.NONE, None

    def upgrade_kraft_version(self, _level: int) -> tuple[ErrorCode, str | None]:
        return ErrorCode.NONE, None

    def prepare(
        self, records: Sequence[Any], metadata_version: int, batch_records_max: int, now_ms: int
    ) -> PreparedAppend:
        if self.is_full:
            raise TooLarge
        last = Offset(self.log_end_offset + len(records) - 1)
        return PreparedAppend(records, (), Position(last, self.epoch, now_ms))

    def append(self, prepared: PreparedAppend, now_ms: int) -> None:
        self.appended.append(prepared)
        self.log_end_offset = Offset(prepared.position.offset + 1)


class Listener:
    """Notes what it is told, and takes its time for a feature that is slow."""

    def __init__(self, events: list[str]) -> None:
        self.events = events
        self.preparing: list[Callable[[], None]] = []

    def prepare(self, _image: MetadataImage, delta: MetadataDelta, done: Callable[[], None]) -> bool:
        if "slow" in delta.features.changed:
            self.preparing.append(done)
            return False
        return True

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        self.events.append(f"published {sorted(delta.features.changed)}")


class World:
    """A controller and a follower on a listed log, and the order in which things happened."""

    def __init__(self) -> None:
        self.log = ListedLog()
        self.published = PublishedMetadata()
        self.events: list[str] = []
        self.listener = Listener(self.events)
        self.published.listen(self.listener)
        self.clock = ManualClock(0)
        self.follower = MetadataFollower(
            MetadataLoader(EMPTY_IMAGE), self.published, lambda offset: self.controller.published(offset)
        )
        self.quotas = MutationQuotas()
        self.controller = self.new_controller()

    def new_controller(self) -> ActiveController:
        settings = ControllerSettings(0, CLUSTER_ID, STATIC)
        world = ControllerWorld(self.clock, random.Random(1), self.quotas)
        return ActiveController(self.log, self.follower.fork_loader(), settings, world)

    def decide(self, *features: str) -> None:
        records = [FeatureLevelRecord(name=name, feature_level=1) for name in features]
        self.controller.handle(
            Decider(lambda view, ask: Decision(ask, records), lambda ask, refusal: refusal.error_code.name),
            " ".join(features) or "nothing",
            None,
            lambda answer: self.events.append(f"answered {answer}"),
        )

    def commit(self, offset: int) -> None:
        while self.log.appended and self.log.appended[0].position.offset <= offset:
            records, _, position, replay = self.log.appended.pop(0)
            self.follower.committed([CommittedRecords(records, position, replay=replay)])


def test_an_answer_comes_after_the_commit_and_after_those_who_follow() -> None:
    world = World()
    world.decide("a")
    assert world.events == []
    assert "a" in world.controller.image.features, "the next decision sees it already"
    assert world.published.image.features == {}
    world.commit(0)
    assert world.events == ["published ['a']", "answered a"]
    assert world.published.image.features == {"a": 1}


def test_answers_keep_the_order_of_decisions() -> None:
    world = World()
    world.decide("a")
    world.decide("b", "c")
    world.decide("d")
    world.commit(2)
    assert world.events == ["published ['a']", "answered a", "published ['b', 'c']", "answered b c"]
    world.commit(3)
    assert world.events[-1] == "answered d"


def test_a_part_of_a_decision_is_not_enough() -> None:
    world = World()
    world.decide("a", "b")
    world.commit(0)
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
    world.commit(0)
    assert world.events == ["published ['a']", "answered a", "answered nothing"]


def test_what_does_not_fit_into_a_batch_changes_nothing() -> None:
    world = World()
    world.log.is_full = True
    with pytest.raises(TooLarge):
        world.decide("a")
    assert world.controller.image.features == {}
    assert world.log.appended == []
    world.log.is_full = False
    world.decide("b")
    assert set(world.controller.image.features) == {"b"}


def test_records_that_do_not_fit_the_metadata_never_reach_the_log() -> None:
    world = World()
    with pytest.raises(MetadataError):
        world.controller.append(
            [
                FeatureLevelRecord(name="a", feature_level=1),
                RemoveTopicRecord(topic_id=Uuid(b"no-topic-0000000")),
            ]
        )
    assert world.log.appended == []
    world.decide("b")
    assert set(world.controller.image.features) == {"b"}, "nor do they leave a trace in what is decided next"


def test_a_transaction_in_one_batch_counts_at_once() -> None:
    world = World()
    feature = FeatureLevelRecord(name="a", feature_level=1)
    world.controller.append([BeginTransactionRecord(), feature, EndTransactionRecord()])
    world.commit(2)
    assert world.events == ["published ['a']"]


def test_a_decision_sees_where_its_records_will_lie() -> None:
    world = World()
    world.decide("a", "b")
    seen: list[ControllerView] = []

    def look(view: ControllerView, ask: None) -> Decision[None]:
        seen.append(view)
        return Decision(None)

    world.clock.now = 77
    world.controller.handle(Decider(look, lambda ask, refusal: None), None, None, lambda _: None)
    assert (seen[0].next_offset, seen[0].now_ms, seen[0].kraft_version) == (2, 77, 1)


def test_what_takes_long_is_prepared_before_anybody_is_told() -> None:
    world = World()
    world.decide("quick")
    world.decide("slow")
    world.decide("later")
    world.decide()
    world.commit(1)
    assert world.events == ["published ['quick']", "answered quick"]
    world.commit(2)
    assert len(world.events) == 2, "what comes later keeps its place"
    assert len(world.listener.preparing) == 1
    world.listener.preparing.pop()()
    assert world.events[2:] == [
        "published ['slow']",
        "answered slow",
        "published ['later']",
        "answered later",
        "answered nothing",
    ]


def test_a_controller_that_resigns_refuses_everything_that_waits() -> None:
    world = World()
    world.decide("committed")
    world.commit(0)
    world.decide("a")
    world.decide()
    world.controller.resign()
    assert world.events[2:] == ["answered NOT_CONTROLLER"] * 2
    world.controller.published(Offset(1))
    assert len(world.events) == 4, "nobody is answered twice"


def test_the_next_controller_begins_with_what_is_committed() -> None:
    world = World()
    world.decide("a")
    world.commit(0)
    world.decide("b")
    world.controller.resign()
    world.log.appended.clear()
    world.log.log_end_offset = Offset(1)
    world.controller = world.new_controller()
    assert set(world.controller.image.features) == {"a"}
    world.decide("c")
    world.commit(1)
    assert world.events[-2:] == ["published ['c']", "answered c"]
    assert set(world.published.image.features) == {"a", "c"}


def test_a_decision_is_charged_to_the_client_that_asked_for_it() -> None:
    world = World()
    entity = QuotaEntityData(entity_type="user", entity_name="u")
    quota = ClientQuotaRecord(entity=(entity,), key=MUTATION_RATE, value=1.0, remove=False)
    world.controller.append([quota])
    world.commit(0)
    answers: list[DeleteTopicsResponse] = []

    def take(view: ControllerView, _ask: object) -> Decision[DeleteTopicsResponse]:
        view.charge(20)
        return Decision(DeleteTopicsResponse(responses=()))

    decider = Decider(take, lambda ask, refusal: None, strict_from=6)
    for caller in (
        Caller(Principal("User", "u"), "", "host", 5),
        Caller(Principal("User", "other"), "", "host", 5),
        None,
    ):
        world.controller.handle(decider, None, caller, answers.append)
    assert [answer.throttle_time_ms for answer in answers] == [9_000, 0, 0], "it had 11 tokens, and took 20"


def test_a_broker_whose_process_is_gone_is_fenced_at_once_and_may_come_back() -> None:
    world = World()
    world.controller.append([registration(1), registration(2)])
    broker = Incarnation(1, 101)
    world.controller.sessions.heard(broker, 0, 0)
    world.controller.broker_is_gone(broker)
    assert world.controller.image.brokers[1].fenced
    assert not world.controller.sessions.has_session(broker, 0)
    appended = len(world.log.appended)
    world.controller.broker_is_gone(broker)
    assert len(world.log.appended) == appended


def test_a_broker_that_came_back_is_not_fenced_for_its_last_process() -> None:
    world = World()
    world.controller.append([registration(1)])
    world.controller.broker_is_gone(Incarnation(1, 99))
    assert not world.controller.image.brokers[1].fenced


def test_brokers_that_stay_silent_are_fenced_by_the_clock() -> None:
    world = World()
    world.controller.append([registration(1)])
    world.commit(0)
    world.controller = world.new_controller()
    assert 0 < world.controller.tick() <= 500
    while not world.controller.image.brokers[1].fenced:
        assert world.clock.now <= 12_000
        world.clock.now += 500
        world.controller.tick()
    assert world.clock.now > 9_000


def test_a_leader_that_was_replaced_is_caught_up_when_it_has_read_so() -> None:
    world = World()
    topic_id = Uuid(b"a topic's own id")
    world.controller.append([registration(1), registration(2)])
    record = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=(1, 2), isr=(1, 2), removing_replicas=(),
        adding_replicas=(), leader=1, leader_epoch=0, partition_epoch=0,
    )  # fmt: skip
    world.controller.append([TopicRecord(name="orders", topic_id=topic_id), record])
    before = world.controller.image.offset
    brokers = world.controller.image.brokers
    assert world.controller.sessions.knows_what_it_leads(brokers[1], before)
    world.controller.append([PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2)])
    assert not world.controller.sessions.knows_what_it_leads(brokers[1], before)
    assert world.controller.sessions.knows_what_it_leads(brokers[1], world.controller.image.offset)
    assert world.controller.sessions.knows_what_it_leads(brokers[2], before)


def test_a_controller_that_takes_over_obeys_the_configs_that_were_set_before() -> None:
    world = World()
    assert world.controller.view().configs.node.min_insync_replicas == 1
    number = ConfigRecord(
        resource_type=ResourceType.BROKER, resource_name="", name="min.insync.replicas", value="2"
    )
    world.controller.append([number])
    assert world.controller.view().configs.node.min_insync_replicas == 2
    world.commit(0)
    assert world.new_controller().view().configs.node.min_insync_replicas == 2
