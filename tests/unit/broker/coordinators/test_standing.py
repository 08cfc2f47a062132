"""A leader answers from memory only while nobody else can lead without its knowledge."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.group_world import ManualClock, topic_id
from tests.support.replicas import TOPIC, ManualScheduler

from ottla.broker.coordinators.standing import LOOK_MS, WAIT_MS_MAX, Standing
from ottla.broker.deferred import Deferred

NOW_MS = 1_000_000


class World:
    """Node 1 leads, nodes 2 and 3 may lead instead."""

    def __init__(self, *, in_sync: frozenset[int] = frozenset({1, 2, 3}), eligible: Any = None) -> None:
        self.node_id = 1
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        self.stands_until_ms = self.clock.monotonic_ms()
        self.fetches = dict.fromkeys((2, 3), 10)
        self.asked: list[Any] = []
        self.answered = True
        self.leading: Any = SimpleNamespace(maximal_in_sync=in_sync, followers={})
        record = SimpleNamespace(eligible_leader_replicas=eligible)
        topic = SimpleNamespace(partitions={0: record})
        self.image = SimpleNamespace(topics=SimpleNamespace(find_by_id=lambda _id: topic))
        self.partition: Any = SimpleNamespace(
            topic_id=topic_id(TOPIC), index=0, is_leader=True, leader_epoch=5, leading=self.leading
        )
        self._count()

    @property
    def membership(self) -> Any:
        return self

    def ask_whether_it_stands(self, answered: Any) -> None:
        self.asked.append(answered)

    def _count(self) -> None:
        self.leading.followers = {one: SimpleNamespace(fetches=count) for one, count in self.fetches.items()}

    def fetch(self, follower: int) -> None:
        self.fetches[follower] += 1
        self._count()

    def confirm(self) -> "Verdict":
        broker: Any = self
        return Verdict(Standing(broker, self.scheduler).confirm(self.partition))

    def run(self, ms: int = 0) -> None:
        for _ in range(ms + 1):
            while self.scheduler.run_once():
                pass
            if ms:
                self.clock.advance(1)


class Verdict:
    """What was found out, once it was."""

    def __init__(self, deferred: Deferred[bool]) -> None:
        self.found: list[bool] = []
        deferred.when_done(self.found.append, self._failed)

    def _failed(self, error: Exception) -> None:
        raise error


@pytest.mark.parametrize("leads", [True, False])
def test_shortly_after_a_heartbeat_nothing_is_asked(leads: bool) -> None:
    world = World()
    world.stands_until_ms += 1
    world.partition.is_leader = leads
    assert world.confirm().found == [leads]
    assert world.asked == []


@pytest.mark.parametrize("in_sync", [frozenset({1}), frozenset()])
def test_who_can_be_replaced_by_nobody_leads(in_sync: frozenset[int]) -> None:
    world = World(in_sync=in_sync)
    assert world.confirm().found == [True]
    world = World()
    world.partition.leading = None
    assert world.confirm().found == [True]


def test_a_heartbeat_that_is_answered_is_enough() -> None:
    world = World()
    verdict = world.confirm()
    assert len(world.asked) == 1
    world.run(LOOK_MS)
    assert verdict.found == []
    world.stands_until_ms = world.clock.monotonic_ms() + 100
    world.asked[0]()
    assert verdict.found == [True]
    world.run(WAIT_MS_MAX)
    assert verdict.found == [True], "once"


def test_a_heartbeat_of_somebody_else_is_noticed_at_the_next_look() -> None:
    world = World()
    verdict = world.confirm()
    world.stands_until_ms = world.clock.monotonic_ms() + 10 * LOOK_MS
    world.run(LOOK_MS)
    assert verdict.found == [True]


def test_an_answer_that_says_nothing_leaves_it_to_the_followers() -> None:
    world = World()
    verdict = world.confirm()
    world.asked[0]()
    world.run(LOOK_MS)
    assert verdict.found == []
    for follower in (2, 2, 3):
        world.fetch(follower)
        world.run(LOOK_MS)
        assert verdict.found == []
    world.fetch(3)
    world.run(LOOK_MS)
    assert verdict.found == [True]


def test_one_that_left_those_in_sync_may_still_be_elected() -> None:
    world = World(in_sync=frozenset({1, 2}), eligible=(3,))
    verdict = world.confirm()
    for _ in range(2):
        world.fetch(2)
    world.run(LOOK_MS)
    assert verdict.found == []
    for _ in range(2):
        world.fetch(3)
    world.run(LOOK_MS)
    assert verdict.found == [True]


def test_one_that_fetches_for_the_first_time_is_counted_from_nothing() -> None:
    world = World()
    del world.fetches[3]
    world._count()
    verdict = world.confirm()
    world.fetches[3] = 0
    for follower in (2, 2, 3):
        world.fetch(follower)
    world.run(LOOK_MS)
    assert verdict.found == []
    world.fetch(3)
    world.run(LOOK_MS)
    assert verdict.found == [True]


@pytest.mark.parametrize("change", [{"is_leader": False}, {"leader_epoch": 6}])
def test_what_is_led_anew_is_not_confirmed(change: dict[str, Any]) -> None:
    world = World()
    verdict = world.confirm()
    vars(world.partition).update(change)
    world.run(LOOK_MS)
    assert verdict.found == [False]

    world = World()
    verdict = world.confirm()
    vars(world.partition).update(change)
    world.stands_until_ms = world.clock.monotonic_ms() + 100
    world.asked[0]()
    assert verdict.found == [False]


def test_after_two_seconds_the_client_is_to_look_elsewhere() -> None:
    world = World()
    verdict = world.confirm()
    world.run(WAIT_MS_MAX - LOOK_MS)
    assert verdict.found == []
    world.run(2 * LOOK_MS)
    assert verdict.found == [False]
