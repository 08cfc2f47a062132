"""Members leave, leave for now, or are taken out."""

import pytest
from tests.support.consumer_world import ConsumerWorld

from ottla.coordination.group.modern.member import LEFT_FOR_NOW
from ottla.coordination.group.settings import ConsumerIntervals
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
)
from ottla.wire.error_code import ErrorCode


@pytest.fixture
def world() -> ConsumerWorld:
    world = ConsumerWorld(orders=4, other=2)
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    return world


def share(world: ConsumerWorld, *, instance_id: str | None = None) -> None:
    """Let two members have two partitions each. The first may be static."""
    world.join("a", instance_id=instance_id)
    world.join("b")
    world.heartbeat("a", 2, instance_id=instance_id)
    world.heartbeat("a", 2, instance_id=instance_id, owned={"orders": [0, 1]})
    world.heartbeat("b", 3)
    assert world.group().state_name == "Stable"


def test_a_member_that_leaves_is_gone_at_once(world: ConsumerWorld) -> None:
    share(world)
    answer = world.heartbeat("a", -1)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "a", -1)
    answer = world.heartbeat("b", 3)
    assert (answer.member_epoch, world.assigned(answer)) == (4, {"orders": [0, 1, 2, 3]})


def test_the_records_of_a_departure_are_kafkas_in_kafkas_order(world: ConsumerWorld) -> None:
    world.join("m")
    written = len(world.records())
    world.heartbeat("m", -1)
    last = world.records()[written:]
    assert [(type(record.key), record.value is None) for record in last] == [
        (ConsumerGroupCurrentMemberAssignmentKey, True),
        (ConsumerGroupTargetAssignmentMemberKey, True),
        (ConsumerGroupMemberMetadataKey, True),
        (ConsumerGroupMetadataKey, False),
    ]
    assert (last[-1].value.epoch, last[-1].value.metadata_hash) == (3, 0)


def test_an_empty_group_stays(world: ConsumerWorld) -> None:
    world.join("m")
    world.heartbeat("m", -1)
    assert world.group().state_name == "Empty"
    assert world.join("n").member_epoch == 4


def test_a_stranger_cannot_leave(world: ConsumerWorld) -> None:
    world.join("m")
    assert world.heartbeat("x", -1).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_taken_out_after_its_session(world: ConsumerWorld) -> None:
    share(world)
    world.advance(30_000)
    world.heartbeat("b", 3)
    world.advance(15_000)
    assert set(world.group().members) == {"b"}
    assert world.heartbeat("a", 3).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_is_taken_out_after_its_rebalance_timeout(
    world: ConsumerWorld,
) -> None:
    world.join("a", rebalance_timeout_ms=20_000)
    world.join("b")
    world.heartbeat("a", 2)
    for _ in range(19):
        world.advance(1_000)
        world.heartbeat("a", 2, owned={"orders": [0, 1, 2, 3]})
        world.heartbeat("b", 3)
    assert set(world.group().members) == {"a", "b"}
    world.advance(1_000)
    assert set(world.group().members) == {"b"}, "heartbeats alone do not help"
    assert world.assigned(world.heartbeat("b", 3)) == {"orders": [0, 1, 2, 3]}


def test_a_member_that_gave_up_in_time_is_not_taken_out(world: ConsumerWorld) -> None:
    world.join("a", rebalance_timeout_ms=20_000)
    world.join("b")
    world.heartbeat("a", 2)
    world.advance(19_000)
    world.heartbeat("a", 2, owned={"orders": [0, 1]})
    world.advance(5_000)
    assert set(world.group().members) == {"a", "b"}


def test_after_a_restart_everybody_has_its_session_and_its_rebalance_timeout_anew(
    world: ConsumerWorld,
) -> None:
    world.join("a", rebalance_timeout_ms=20_000)
    world.join("b")
    world.heartbeat("a", 2)
    world.advance(19_000)
    world.crash()
    world.advance(19_000)
    assert set(world.group().members) == {"a", "b"}
    world.advance(1_000)
    assert set(world.group().members) == {"b"}
    world.advance(25_000)
    assert not world.group().members


def test_a_static_member_that_leaves_for_now_keeps_its_partitions(world: ConsumerWorld) -> None:
    share(world, instance_id="i")
    answer = world.heartbeat("a", LEFT_FOR_NOW, instance_id="i")
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, -2)
    assert world.group().epoch == 3
    assert world.heartbeat("b", 3).assignment is None

    answer = world.join("a2", instance_id="i")
    assert (answer.member_epoch, world.assigned(answer)) == (3, {"orders": [0, 1]})
    assert set(world.group().members) == {"a2", "b"}
    assert world.group().epoch == 3, "nobody else needs to know"


def test_partitions_of_a_static_member_that_is_back_count_as_its_own_from_the_beginning(
    world: ConsumerWorld,
) -> None:
    share(world, instance_id="i")
    world.heartbeat("a", LEFT_FOR_NOW, instance_id="i")
    assigned = world.group().members["a"].assignment.assigned
    assert assigned == {world.id_of("orders"): {0: 0, 1: 0}}


def test_a_static_member_that_stays_away_is_taken_out(world: ConsumerWorld) -> None:
    share(world, instance_id="i")
    world.heartbeat("a", LEFT_FOR_NOW, instance_id="i")
    world.advance(30_000)
    world.heartbeat("b", 3)
    world.advance(15_000)
    assert set(world.group().members) == {"b"}
    assert not world.group().static_members


def test_an_instance_id_in_use_is_not_released(world: ConsumerWorld) -> None:
    world.join("a", instance_id="i")
    assert world.join("a2", instance_id="i").error_code is ErrorCode.UNRELEASED_INSTANCE_ID


def test_the_one_before_is_fenced_by_its_instance_id(world: ConsumerWorld) -> None:
    world.join("a", instance_id="i")
    world.heartbeat("a", LEFT_FOR_NOW, instance_id="i")
    world.join("a2", instance_id="i")
    for epoch in (2, -1, LEFT_FOR_NOW):
        assert world.heartbeat("a", epoch, instance_id="i").error_code is ErrorCode.FENCED_INSTANCE_ID


def test_an_unknown_instance_id_is_an_unknown_member(world: ConsumerWorld) -> None:
    world.join("a")
    for epoch in (2, -1, LEFT_FOR_NOW):
        assert world.heartbeat("a", epoch, instance_id="i").error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_may_leave_for_good(world: ConsumerWorld) -> None:
    world.join("a", instance_id="i")
    assert world.heartbeat("a", -1, instance_id="i").member_epoch == -1
    assert not world.group().members


def test_a_static_member_that_is_away_outlives_a_restart(world: ConsumerWorld) -> None:
    share(world, instance_id="i")
    world.heartbeat("a", LEFT_FOR_NOW, instance_id="i")
    world.crash()
    answer = world.join("a2", instance_id="i")
    assert (answer.member_epoch, world.assigned(answer)) == (3, {"orders": [0, 1]})


def test_a_static_member_that_comes_back_may_want_something_else(world: ConsumerWorld) -> None:
    share(world, instance_id="i")
    world.heartbeat("a", LEFT_FOR_NOW, instance_id="i")
    answer = world.join("a2", "other", instance_id="i")
    assert (answer.member_epoch, world.assigned(answer)) == (4, {"other": [0, 1]})
