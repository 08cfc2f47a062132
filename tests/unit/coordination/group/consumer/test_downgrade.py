"""A consumer group becomes a classic one when only classic members are left."""

import pytest
from tests.support.consumer_world import GROUP, ConsumerWorld
from tests.unit.coordination.group.consumer.classic_consumers import (
    heartbeat,
    join,
    join_new,
    leave,
    opened,
    sync,
)

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.wire.error_code import ErrorCode


def new_world(**settings: object) -> ConsumerWorld:
    world = ConsumerWorld(
        GroupSettings(initial_rebalance_delay_ms=0, **settings),  # type: ignore[arg-type]
        orders=4,
        other=2,
    )
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    return world


@pytest.fixture
def world() -> ConsumerWorld:
    return new_world()


def classic(world: ConsumerWorld) -> ClassicGroup:
    group = world.shard.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    return group


def test_the_group_goes_on_as_a_classic_one_and_rebalances(world: ConsumerWorld) -> None:
    world.join("new")
    (joined,) = join_new(world)
    world.heartbeat("new", -1)
    group = classic(world)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert (group.generation, group.protocol_name) == (3, "range")
    assert heartbeat(world, joined.member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    (again,) = join(world, joined.member_id)
    assert (again.generation_id, again.leader) == (4, joined.member_id)


def test_members_keep_what_the_target_gave_them(world: ConsumerWorld) -> None:
    world.join("new")
    (joined,) = join_new(world)
    target = world.group().targets[joined.member_id]
    world.heartbeat("new", -1)
    kept = opened(classic(world).members[joined.member_id].assignment)
    assert kept == {"orders": sorted(target[world.id_of("orders")])}


def test_a_session_that_ends_makes_the_group_classic_too(world: ConsumerWorld) -> None:
    world.intervals = ConsumerIntervals(session_timeout_ms=10_000, assignment_interval_ms=0)
    world.join("new")
    join_new(world)
    world.advance(10_000)
    assert len(classic(world).members) == 1


def test_the_last_of_both_leave_together(world: ConsumerWorld) -> None:
    world.join("new")
    (joined,) = join_new(world)
    leave(world, ("new", None), (joined.member_id, None))
    assert world.group().is_empty


@pytest.mark.parametrize("policy", [{"may_downgrade": False}, {"classic_group_size_max": 0}])
def test_a_group_that_may_not_change_stays_a_consumer_group(policy: dict[str, object]) -> None:
    world = new_world(**policy)
    world.join("new")
    (joined,) = join_new(world)
    world.heartbeat("new", -1)
    assert set(world.group().members) == {joined.member_id}


def test_a_static_member_that_comes_back_with_the_classic_protocol_makes_the_group_classic(
    world: ConsumerWorld,
) -> None:
    world.join("new", instance_id="i")
    (joined,) = join(world, "", instance_id="i")
    group = classic(world)
    assert set(group.members) == {joined.member_id}
    assert group.state is GroupState.STABLE, "nothing has changed for anybody"
    assert joined.generation_id == group.generation
    assert opened(group.members[joined.member_id].assignment) == {"orders": [0, 1, 2, 3]}


def test_a_static_member_that_wants_something_else_makes_the_classic_group_rebalance(
    world: ConsumerWorld,
) -> None:
    world.join("new", instance_id="i")
    join(world, "", "other", instance_id="i")
    assert classic(world).state is GroupState.PREPARING_REBALANCE


def test_timers_of_the_consumer_group_are_gone(world: ConsumerWorld) -> None:
    world.join("new")
    (joined,) = join_new(world)
    world.heartbeat("new", -1)
    join(world, joined.member_id)
    sync(world, joined.member_id, 4, {})
    for _ in range(5):
        world.advance(10_000)
        heartbeat(world, joined.member_id, 4)
    assert joined.member_id in classic(world).members


def test_a_member_that_is_not_heard_of_after_the_change_is_taken_out(world: ConsumerWorld) -> None:
    world.join("new")
    join_new(world)
    world.heartbeat("new", -1)
    world.advance(30_000)
    assert not classic(world).members


def test_the_changed_group_outlives_a_restart(world: ConsumerWorld) -> None:
    world.join("new")
    (joined,) = join_new(world)
    world.heartbeat("new", -1)
    world.crash()
    assert set(classic(world).members) == {joined.member_id}
    assert classic(world).generation == 3


def test_a_write_that_fails_leaves_the_consumer_group_as_it_was(world: ConsumerWorld) -> None:
    world.join("new")
    join_new(world)
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.heartbeat("new", -1).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.logs[0].refusal = None
    assert world.heartbeat("new", 2).error_code is ErrorCode.NONE
