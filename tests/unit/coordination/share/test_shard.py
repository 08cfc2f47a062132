"""A shard of share states keeps its log short: old snapshots are taken anew, and what is before them goes."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.group_world import ManualClock

from ottla.coordination.runtime.timers import Timers
from ottla.coordination.share.coordinator import _find_late_leader, _find_late_state
from ottla.coordination.share.settings import ShareSettings
from ottla.coordination.share.state import (
    PartitionState,
    PartitionUpdate,
    ShareKey,
    ShareShard,
    snapshot_record,
    update_record,
)
from ottla.coordination.share.state_batches import StateBatch
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

TOPIC = Uuid(b"the orders of us")
KEYS = [ShareKey("g", TOPIC, number) for number in range(3)]
INTERVAL_MS = ShareSettings().cold_snapshot_interval_ms


def state(written_ms: int = 0, *, leader_epoch: int = 1, start_offset: int = 10) -> PartitionState:
    return PartitionState(0, 0, leader_epoch, start_offset, 0, (), 0, written_ms)


class World:
    """A shard, its log and its timers."""

    def __init__(self) -> None:
        self.settings = ShareSettings(updates_per_snapshot=2)
        self.clock = ManualClock(wall_ms=0)
        self.timers = Timers(self.clock)
        self.topics: Any = None
        self.log: list[Any] = []
        self.pruned: list[int] = []
        self.submitted: list[Any] = []
        self.shard = ShareShard(self)

    def written_offset(self) -> int:
        return len(self.log) - 1

    def prune(self, query: Callable[[], int]) -> None:
        self.pruned.append(query())

    def submit(self, decide: Callable[[], Any]) -> None:
        decision = decide()
        self.submitted.append(decision)
        self.write(*decision.records)

    def write(self, *records: Any) -> None:
        for record in records:
            self.log.append(record)
            self.shard.replay((record,), None)

    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timers.fire()


@pytest.fixture
def world() -> World:
    world = World()
    world.shard.activate(0)
    return world


def test_a_state_that_is_not_changed_gets_a_new_snapshot_and_the_log_before_can_go(world: World) -> None:
    world.write(*(snapshot_record(key, state()) for key in KEYS))
    world.wait(INTERVAL_MS)
    (decision,) = world.submitted
    assert [record.key.partition for record in decision.records] == [0, 1, 2]
    assert {one.snapshot_epoch for one in world.shard.states.values()} == {1}
    assert {one.written_ms for one in world.shard.states.values()} == {INTERVAL_MS}
    assert {one.start_offset for one in world.shard.states.values()} == {10}
    assert world.shard.first_needed_offset() == 3
    world.wait(INTERVAL_MS)
    assert len(world.submitted) == 2, "it is looked at again"
    assert not world.submitted[1].records, "none has been without a snapshot for the first time"


def test_what_was_written_lately_needs_none(world: World) -> None:
    world.write(snapshot_record(KEYS[0], state()), snapshot_record(KEYS[1], state(written_ms=1)))
    world.wait(INTERVAL_MS)
    assert [record.key.partition for record in world.submitted[0].records] == [0]
    assert world.shard.first_needed_offset() == 1, "the oldest snapshot that counts"


def test_nothing_before_the_oldest_snapshot_is_kept(world: World) -> None:
    world.wait(world.settings.prune_interval_ms)
    assert world.pruned == [0], "nothing was written yet"
    world.write(snapshot_record(KEYS[0], state()), snapshot_record(KEYS[1], state()))
    world.write(update_record(KEYS[0], 0, PartitionUpdate(1, 12, 0, ())))
    world.write(snapshot_record(KEYS[0], state()))
    assert world.shard.first_needed_offset() == 1
    world.write(snapshot_record(KEYS[1], state())._replace(value=None))
    assert world.shard.first_needed_offset() == 3
    assert KEYS[1] not in world.shard.states
    world.wait(world.settings.prune_interval_ms)
    assert len(world.pruned) == 2


def test_a_shard_that_serves_no_more_writes_nothing(world: World) -> None:
    world.write(snapshot_record(KEYS[0], state()))
    world.shard.deactivate()
    world.wait(10 * INTERVAL_MS)
    assert not world.submitted
    assert not world.pruned


def test_updates_change_what_a_snapshot_said(world: World) -> None:
    batch = StateBatch(12, 14, 2, 1)
    world.write(snapshot_record(KEYS[0], state()))
    world.write(update_record(KEYS[0], 0, PartitionUpdate(-1, -1, 3, (batch,))))
    found = world.shard.states[KEYS[0]]
    assert (found.leader_epoch, found.start_offset, found.delivery_complete_count) == (1, 10, 3)
    assert found.batches == (batch,)
    world.write(update_record(KEYS[0], 0, PartitionUpdate(4, 13, 0, ())))
    found = world.shard.states[KEYS[0]]
    assert (found.leader_epoch, found.start_offset) == (4, 13)
    assert world.shard.leader_epochs[KEYS[0]] == 4
    world.write(update_record(KEYS[0], 0, PartitionUpdate(2, 13, 0, ())))
    assert world.shard.leader_epochs[KEYS[0]] == 4, "an older leader does not count"


def test_updates_are_counted_from_snapshot_to_snapshot(world: World) -> None:
    update = update_record(KEYS[0], 0, PartitionUpdate(1, 12, 0, ()))
    world.write(snapshot_record(KEYS[0], state()), update)
    world.write(snapshot_record(KEYS[0], state()))
    assert world.shard.update_counts[KEYS[0]] == 1, "this one was not due because of updates"
    world.write(update)
    assert world.shard.update_counts[KEYS[0]] == 2
    world.write(snapshot_record(KEYS[0], state()))
    assert world.shard.update_counts[KEYS[0]] == 0


def test_while_it_loads_offsets_are_those_of_the_log() -> None:
    world = World()
    world.log = [None] * 7
    world.shard.replay((snapshot_record(KEYS[0], state()), snapshot_record(KEYS[1], state())), None)
    assert world.shard.first_needed_offset() == 7


def test_an_epoch_that_cannot_be_is_late_also_if_there_is_no_state(world: World) -> None:
    late = _find_late_state(world.shard, KEYS[0], -2), _find_late_leader(world.shard, KEYS[0], -2)
    assert [one and one.error_code for one in late] == [
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
    ]
