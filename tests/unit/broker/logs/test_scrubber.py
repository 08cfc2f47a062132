"""Logs are read for damage in rounds, and at once where somebody has met something strange."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler, Replica, ReplicaNode
from tests.unit.storage.damages.test_damage import COUNT, written_log
from tests.unit.storage.damages.test_healing import damage
from tests.unit.storage.logs import NOW_MS, batch, new_log

from ottla.broker.logs.partition import Partition
from ottla.broker.logs.scrubber import FIRST_MS_MAX, Scrubber
from ottla.model.ids import Offset
from ottla.storage.damages.unhealed import Unhealed
from ottla.storage.errors import DamagedRecords
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.world.workers import Steps


class ManualWorkers:
    """Workers that a test lets work."""

    def __init__(self) -> None:
        self.begun: list[tuple[Steps, Callable[[], None]]] = []

    def run_steps(self, steps: Steps, ended: Callable[[], None]) -> Any:
        self.begun.append((steps, ended))
        return object()

    def work(self, number: int) -> None:
        """Do what was begun, up to its end."""
        steps, ended = self.begun.pop(number)
        for _ in steps:
            pass
        ended()


class World:
    """A scrubber of one partition."""

    def __init__(self, log: Log) -> None:
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        self.workers = ManualWorkers()
        replica = Replica(ReplicaNode(1, self.clock, self.scheduler))
        replica.partition.log = log
        self.partition = replica.partition
        self.partitions = [self.partition]
        self.found: list[Unhealed] = []
        broker: Any = SimpleNamespace(
            config=SimpleNamespace(ottla_scrub_interval_ms=1 << 40, ottla_scrub_bytes_per_second=1),
            partitions=self.partitions,
            workers=self.workers,
        )
        self.scrubber = Scrubber(broker, self.scheduler, self._take)
        log.when_damaged = lambda offset: self.scrubber.check(self.partition, offset)

    def _take(self, _partition: Partition, damaged: tuple[Unhealed, ...]) -> None:
        self.found += damaged


def test_an_urgent_check_does_not_wait_for_the_round() -> None:
    world = World(written_log())
    damage(world.partition.log, 4)
    world.scrubber.start()
    world.clock.advance(FIRST_MS_MAX)
    world.scheduler.run_once()
    assert len(world.workers.begun) == 1
    world.scrubber.check(world.partition, Offset(4))
    world.scrubber.check(world.partition, Offset(7))
    assert len(world.workers.begun) == 2, "one beside the round, and the next one after it"
    world.workers.work(1)
    assert [one.first_offset for one in world.found] == [4]
    world.scheduler.run_once()
    assert len(world.workers.begun) == 2


def test_a_gap_is_read_past_when_a_check_has_found_nothing_wrong() -> None:
    log = new_log()
    for base_offset in (0, 5):
        log.append_as_follower(batch(base_offset=base_offset))
    world = World(log)
    with pytest.raises(DamagedRecords):
        log.read(Offset(1), 1 << 20, ReadLimit.LOG_END)
    world.workers.work(0)
    assert world.found == []
    assert log.read(Offset(1), 1 << 20, ReadLimit.LOG_END).batch_offset == 5


def test_a_gap_beside_damage_is_read_past() -> None:
    log = new_log()
    for base_offset in (0, 5, 6):
        log.append_as_follower(batch(base_offset=base_offset))
    damage(log, 2)
    world = World(log)
    with pytest.raises(DamagedRecords):
        log.read(Offset(1), 1 << 20, ReadLimit.LOG_END)
    world.workers.work(0)
    assert [one.first_offset for one in world.found] == [6]
    assert log.read(Offset(1), 1 << 20, ReadLimit.LOG_END).batch_offset == 5


def test_a_gap_that_is_damage_is_never_read_past() -> None:
    log = written_log()
    world = World(log)
    damage(log, COUNT - 1, at=3)
    for _ in range(2):
        with pytest.raises(DamagedRecords):
            log.read(Offset(COUNT - 1), 1 << 20, ReadLimit.LOG_END)
        world.workers.work(0)
        world.scheduler.run_once()
    assert {(one.first_offset, one.is_displaced) for one in world.found} == {(COUNT - 1, True)}


def test_damage_of_a_replica_that_went_during_its_check_is_left_alone() -> None:
    world = World(written_log())
    damage(world.partition.log, 4)
    world.scrubber.check(world.partition, None)
    world.partitions.remove(world.partition)
    world.workers.work(0)
    assert world.found == []
