"""What the active controller does of its own accord."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.deciding import SESSION_TIMEOUT_MS, STATIC, DecidingController, registration

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.topics import NO_LEADER
from ottla.quorum.controller.brokers.fencing import fence_incarnation
from ottla.quorum.controller.brokers.sessions import STANDS_MS, BrokerSessions, Incarnation
from ottla.quorum.controller.decision import ControllerView
from ottla.quorum.controller.upkeep import (
    Task,
    Upkeep,
    balance_leaders,
    balance_replicas,
    elect_unclean,
    fence_stale_broker,
    give_up_unseen_brokers,
)
from ottla.wire.declare import replace


class Acting:
    """A controller that acts at once."""

    def __init__(self, brokers: int = 3) -> None:
        self.deciding = DecidingController([registration(number) for number in range(brokers)])
        self.deciding.sessions.begin(self.deciding.image.brokers, 0, 0)

    @property
    def sessions(self) -> BrokerSessions:
        return self.deciding.sessions

    def view(self) -> ControllerView:
        return self.deciding.view

    def append(self, records: Sequence[Any]) -> None:
        self.deciding.replay(*records)


def config(**changes: str) -> NodeConfig:
    static = {**STATIC, **{name.replace("_", "."): value for name, value in changes.items()}}
    return EffectiveConfigs(static).node


def test_a_broker_that_is_not_heard_from_is_fenced_and_others_lead() -> None:
    acting = Acting()
    acting.deciding.have("t", (0, 1, 2), min_insync_replicas="2")
    acting.deciding.monotonic_ms = SESSION_TIMEOUT_MS + 1
    for number in (1, 2):
        acting.sessions.heard(Incarnation(number, 100 + number), 0, acting.deciding.monotonic_ms)
    assert fence_stale_broker(acting)
    assert acting.deciding.image.brokers[0].fenced
    partition = acting.deciding.partition("t")
    assert (partition.leader, partition.isr) == (1, (1, 2))
    assert not fence_stale_broker(acting)


def test_stale_brokers_are_fenced_one_at_a_time() -> None:
    acting = Acting()
    acting.deciding.monotonic_ms = SESSION_TIMEOUT_MS + 1
    for fenced in (1, 2, 3):
        assert fence_stale_broker(acting)
        assert sum(one.fenced for one in acting.deciding.image.brokers.values()) == fenced
    assert not fence_stale_broker(acting)


def test_a_broker_that_is_fenced_already_is_only_forgotten() -> None:
    acting = Acting()
    acting.deciding.replay(registration(0, fenced=True))
    acting.deciding.monotonic_ms = SESSION_TIMEOUT_MS + 1
    offset = acting.deciding.image.offset
    assert fence_stale_broker(acting)
    assert acting.deciding.image.offset == offset


def test_preferred_leaders_get_their_partitions_back() -> None:
    acting = Acting()
    acting.deciding.have("t", (0, 1), (1, 2))
    acting.deciding.replay(replace(acting.deciding.partition("t", 0), leader=1))
    acting.deciding.replay(replace(acting.deciding.partition("t", 1), leader=2, isr=(2,)))
    assert balance_leaders(acting), "the present ones may take themselves for leaders for a moment"
    acting.deciding.monotonic_ms += STANDS_MS - 1
    assert balance_leaders(acting)
    assert acting.deciding.partition("t", 0).leader == 1
    acting.deciding.monotonic_ms += 1
    assert not balance_leaders(acting)
    assert not acting.sessions.is_held
    assert acting.deciding.partition("t", 0).leader == 0
    assert acting.deciding.partition("t", 1).leader == 2, "the preferred one is not in sync"


def test_no_more_leaders_are_elected_at_once_than_the_log_should_take() -> None:
    acting = Acting()
    topic = acting.deciding.have("t", *[(0, 1)] * 1_500)
    acting.deciding.replay(*(replace(one, leader=1) for one in topic.partitions.values()))
    assert balance_leaders(acting)
    acting.deciding.monotonic_ms += STANDS_MS
    assert balance_leaders(acting)
    leaders = [one.leader for one in acting.deciding.topic("t").partitions.values()]
    assert leaders.count(0) == 1_000
    assert balance_leaders(acting)
    acting.deciding.monotonic_ms += STANDS_MS
    assert not balance_leaders(acting)


@pytest.mark.parametrize(("allows", "leader"), [("true", 1), ("false", NO_LEADER)])
def test_a_topic_that_allows_it_gets_a_leader_at_the_price_of_records(allows: str, leader: int) -> None:
    acting = Acting()
    acting.deciding.have("t", (0, 1), unclean_leader_election_enable=allows)
    gone = registration(0, fenced=True)
    acting.deciding.replay(gone, replace(acting.deciding.partition("t"), leader=NO_LEADER, isr=(0,)))
    assert not elect_unclean(acting)
    assert acting.deciding.partition("t").leader == leader


def test_no_records_are_given_up_for_a_broker_that_only_seems_to_be_gone() -> None:
    acting = Acting(2)
    acting.deciding.have("t", (0, 1), unclean_leader_election_enable="true")
    acting.deciding.replay(replace(acting.deciding.partition("t"), isr=(0,)))
    for now_ms in (1_000, SESSION_TIMEOUT_MS):
        acting.deciding.monotonic_ms = now_ms
        acting.sessions.heard(Incarnation(1, 101), 0, now_ms)
        if now_ms == 1_000:
            acting.sessions.lose_sight(Incarnation(0, 100), now_ms)
            acting.append(fence_incarnation(acting.view(), Incarnation(0, 100)))
        assert not give_up_unseen_brokers(acting)
        assert not elect_unclean(acting)
        assert acting.deciding.partition("t").leader == NO_LEADER, "it may live"
    acting.deciding.monotonic_ms = SESSION_TIMEOUT_MS + 1
    assert not give_up_unseen_brokers(acting)
    assert acting.deciding.partition("t").leader == 1, "its session would be over"


def test_a_controller_that_takes_over_gives_brokers_that_are_fenced_the_rest_of_a_session() -> None:
    acting = Acting(2)
    acting.deciding.have("t", (0, 1), unclean_leader_election_enable="true")
    partition = replace(
        acting.deciding.partition("t"), isr=(), leader=NO_LEADER, eligible_leader_replicas=(0,)
    )
    acting.deciding.replay(registration(0, fenced=True), partition)
    acting.sessions.begin(acting.deciding.image.brokers, 0, 0)
    assert not elect_unclean(acting)
    assert acting.deciding.partition("t").leader == NO_LEADER
    acting.deciding.monotonic_ms = SESSION_TIMEOUT_MS + 1
    give_up_unseen_brokers(acting)
    assert acting.deciding.partition("t").leader == 1


def test_tasks_run_at_their_intervals_and_soon_again_if_there_is_more() -> None:
    acting = Acting()
    runs: list[int] = []
    unfinished = [True, False, False]

    def run(_acting: object) -> bool:
        runs.append(1)
        return unfinished.pop(0)

    upkeep = Upkeep(config(), 1_000, [Task(run, lambda _config: 500)])
    assert upkeep.run(acting, 1_000) == 500
    assert not runs
    assert upkeep.run(acting, 1_500) == 10
    assert upkeep.run(acting, 1_505) == 5
    assert upkeep.run(acting, 1_510) == 500
    assert len(runs) == 2


def test_what_is_switched_off_is_not_done() -> None:
    acting = Acting()
    acting.deciding.have("t", (0, 1))
    acting.deciding.replay(replace(acting.deciding.partition("t"), leader=1))
    off = Upkeep(config(auto_leader_rebalance_enable="false"), 0)
    off.run(acting, 10**9)
    assert acting.deciding.partition("t").leader == 1
    on = Upkeep(config(), 0)
    on.run(acting, 10**9)
    assert acting.sessions.is_held, "it is about to be done"


def test_a_controller_that_was_stopped_for_a_while_fences_nobody_for_it() -> None:
    acting = Acting()
    upkeep = Upkeep(config(), 0)
    acting.deciding.monotonic_ms = 10 * SESSION_TIMEOUT_MS
    upkeep.run(acting, acting.deciding.monotonic_ms)
    assert not any(broker.fenced for broker in acting.deciding.image.brokers.values())
    for _ in range(20):
        acting.deciding.monotonic_ms += SESSION_TIMEOUT_MS // 8
        upkeep.run(acting, acting.deciding.monotonic_ms)
    assert all(broker.fenced for broker in acting.deciding.image.brokers.values())


def test_replicas_of_a_broker_are_moved_when_it_was_away_for_long_enough() -> None:
    acting = Acting()
    leave_ms = acting.view().configs.node.ottla_balance_leave_ms
    acting.deciding.have("t", (0, 1))
    balance_replicas(acting)
    assert acting.deciding.partition("t").replicas == (0, 1), "it is balanced"
    acting.deciding.replay(registration(1, fenced=True))
    for now_ms in (1000, 1000 + leave_ms - 1):
        acting.deciding.monotonic_ms = now_ms
        assert not balance_replicas(acting)
        assert not acting.deciding.partition("t").adding_replicas, "it may only restart"
    acting.deciding.monotonic_ms = 1000 + leave_ms
    assert not balance_replicas(acting)
    moving = acting.deciding.partition("t")
    assert (moving.adding_replicas, moving.removing_replicas) == ((2,), (1,))
