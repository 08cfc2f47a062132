"""Rounds over all partitions let others have their turn."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler

from ottla.broker.journal.journal import Journal
from ottla.broker.journal.sampling import Sampler
from ottla.broker.node import Broker
from ottla.broker.replication.replication import Replication
from ottla.runtime import slices
from ottla.runtime.slices import Slices

PARTITIONS = 5


@pytest.fixture(autouse=True)
def _slices_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_NS", 0)


class Facts:
    """An object with some attributes that can be a key."""

    def __init__(self, **facts: object) -> None:
        self.__dict__.update(facts)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.scheduler = ManualScheduler(self.clock)

    def turns(self) -> int:
        """Let everything come to its end. Returns in how many turns."""
        turns = 0
        while self.scheduler.run_once():
            turns += 1
        return turns


def test_a_round_that_is_under_way_is_not_begun_again() -> None:
    world, seen = World(), list[int]()

    def steps() -> Iterator[None]:
        for number in range(3):
            seen.append(number)
            yield

    rounds = Slices(cast(Any, world.scheduler), world.clock)
    rounds.run("a", steps())
    rounds.run("a", steps())
    assert seen == [0]
    world.turns()
    assert seen == [0, 1, 2]
    rounds.run("a", steps())
    rounds.stop()
    world.turns()
    assert seen == [0, 1, 2, 0]


def test_the_journal_looks_at_logs_in_slices() -> None:
    world = World()
    log = SimpleNamespace(log_end_offset=3, high_watermark=3, active_producers=dict)
    partitions = [
        Facts(topic="t", index=index, log=log, is_leader=True, is_internal=False)
        for index in range(PARTITIONS)
    ]
    journal = Journal(world.clock)
    journal.is_on = True
    broker = SimpleNamespace(
        node_id=1,
        clock=world.clock,
        world=SimpleNamespace(scheduler=world.scheduler),
        partitions=partitions,
        journal=journal,
        config=SimpleNamespace(ottla_journal_interval_ms=1000),
        flusher=SimpleNamespace(sync_times=SimpleNamespace(buckets=[])),
    )
    Sampler(cast(Broker, broker)).look()
    assert journal.take() == []
    assert world.turns() == PARTITIONS
    (event,) = journal.take()
    assert len(event.facts["ends"]) == PARTITIONS


def test_followers_are_looked_after_in_slices() -> None:
    world, looked = World(), list[int]()

    def partition(index: int) -> Any:
        return SimpleNamespace(leading=SimpleNamespace(maybe_shrink=lambda _now_ms: looked.append(index)))

    replication = SimpleNamespace(
        _look_after_followers=None,
        _broker=SimpleNamespace(partitions=[partition(index) for index in range(PARTITIONS)]),
        _slices=Slices(cast(Any, world.scheduler), world.clock),
        scheduler=SimpleNamespace(call_later=lambda *_: None),
        monotonic_ms=world.clock.monotonic_ms,
        lag_ms_max=1000,
    )
    replication._look_at_each = lambda: Replication._look_at_each(cast(Replication, replication))
    Replication._look_after_followers(cast(Replication, replication))
    assert looked == [0]
    world.turns()
    assert looked == list(range(PARTITIONS))
