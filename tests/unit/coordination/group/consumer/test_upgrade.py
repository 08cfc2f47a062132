"""A classic group becomes a consumer group while it is in use."""

import pytest
from tests.support.consumer_world import GROUP, ConsumerWorld
from tests.unit.coordination.group.consumer.classic_consumers import (
    assignment,
    heartbeat,
    join,
    join_new,
    stable_classic_group,
    sync,
)

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.wire.coordinator_records.classic_group import GroupMetadataKey
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupRequest


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


def test_members_keep_what_their_leader_assigned(world: ConsumerWorld) -> None:
    (old,) = stable_classic_group(world, {"orders": [0, 1, 2, 3]})
    generation = world.shard.state.groups[GROUP].generation  # type: ignore[attr-defined]
    answer = world.join("new")
    assert (answer.member_epoch, world.assigned(answer)) == (generation + 1, {})
    member = world.group().members[old]
    assert member.classic is not None
    assert member.epoch == generation
    assert member.topic_names == {"orders"}
    assert member.assignment.assigned == {world.id_of("orders"): dict.fromkeys(range(4), generation)}


def test_the_change_is_one_batch_that_begins_with_the_end_of_the_classic_group(world: ConsumerWorld) -> None:
    stable_classic_group(world, {"orders": [0, 1]}, {"orders": [2, 3]})
    world.join("new")
    batch = world.logs[0].stored[-1].read().records
    assert [type(record.key) for record in batch] == [
        GroupMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMetadataKey,
        *[ConsumerGroupTargetAssignmentMemberKey] * 2,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupCurrentMemberAssignmentKey,
    ]
    assert next(iter(batch)).value is None


def test_the_classic_member_is_told_to_join_again_and_gives_up_its_share(world: ConsumerWorld) -> None:
    (old,) = stable_classic_group(world, {"orders": [0, 1, 2, 3]})
    new = world.join("new")
    assert heartbeat(world, old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = join(world, old, owned={"orders": [0, 1, 2, 3]})
    assert joined.generation_id == 1, "first it has to give something up"
    kept = sync(world, old, 1)
    assert kept.error_code is ErrorCode.NONE
    assert heartbeat(world, old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = join(world, old, owned={"orders": [0, 1]})
    assert joined.generation_id == new.member_epoch
    assert heartbeat(world, old, new.member_epoch) is ErrorCode.NONE
    assert world.assigned(world.heartbeat("new", new.member_epoch)) == {"orders": [2, 3]}


def test_an_empty_classic_group_gives_way(world: ConsumerWorld) -> None:
    join(world, "")
    assert isinstance(world.shard.state.groups[GROUP], ClassicGroup)
    assert world.join("new").member_epoch == 2
    assert world.records()[1].key == GroupMetadataKey(group=GROUP)
    assert world.records()[1].value is None
    world.crash()
    assert set(world.group().members) == {"new"}


def test_those_who_wait_to_join_are_told_to_try_again(world: ConsumerWorld) -> None:
    ids = stable_classic_group(world, {"orders": [0]}, {"orders": [1]})
    waiting = join(world, ids[0], "orders", "other")
    assert not waiting
    world.join("new")
    assert waiting[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS


def test_those_who_wait_to_sync_are_told_to_try_again(world: ConsumerWorld) -> None:
    ids = stable_classic_group(world, {"orders": [0]}, {"orders": [1]})
    answers = join(world, ids[0], "orders", "other")
    join(world, ids[1])
    world.settle()
    follower = ids[1] if answers[0].leader == ids[0] else ids[0]
    waiting = world.send(
        "sync_group",
        SyncGroupRequest(
            group_id=GROUP,
            generation_id=answers[0].generation_id,
            member_id=follower,
            assignments=(),
        ),
    )
    assert not waiting
    world.join("new")
    assert waiting[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS


def test_timers_of_the_classic_group_are_gone(world: ConsumerWorld) -> None:
    (old,) = stable_classic_group(world, {"orders": [0]})
    world.join("new")
    world.advance(29_000)
    heartbeat(world, old, 1)
    world.heartbeat("new", 2)
    world.advance(2_000)
    assert set(world.group().members) == {old, "new"}


def test_a_converted_member_that_goes_silent_is_taken_out_after_its_own_session(world: ConsumerWorld) -> None:
    (old,) = stable_classic_group(world, {"orders": [0]})
    world.join("new")
    world.advance(30_000)
    assert set(world.group().members) == {"new"}
    assert old not in world.group().members


@pytest.mark.parametrize("policy", [{"may_upgrade": False}, {"consumer_group_size_max": 0}])
def test_a_group_that_may_not_change_is_not_found(policy: dict[str, object]) -> None:
    world = new_world(**policy)
    stable_classic_group(world, {"orders": [0]})
    assert world.join("new").error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(world.shard.state.groups[GROUP], ClassicGroup)


def test_data_of_an_own_assignor_is_not_thrown_away(world: ConsumerWorld) -> None:
    (first,) = join_new(world)
    sync(world, first.member_id, 1, {first.member_id: assignment({"orders": [0]}, b"mine")})
    answer = world.join("new")
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "unsupported custom assignor is in use" in answer.error_message


def test_blobs_that_cannot_be_read_stop_the_change(world: ConsumerWorld) -> None:
    (first,) = join_new(world)
    sync(world, first.member_id, 1, {first.member_id: b"\x00"})
    assert world.join("new").error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(world.shard.state.groups[GROUP], ClassicGroup)


def test_a_group_that_was_never_settled_can_change(world: ConsumerWorld) -> None:
    """Its members have joined, but their leader has not brought an assignment yet."""
    join_new(world)
    answer = world.join("new")
    assert answer.error_code is ErrorCode.NONE
    assert world.group().classic_member_count == 1


def test_a_heartbeat_that_does_not_join_changes_nothing(world: ConsumerWorld) -> None:
    stable_classic_group(world, {"orders": [0]})
    for epoch in (1, -1):
        assert world.heartbeat("new", epoch).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_write_that_fails_leaves_the_classic_group_as_it_was(world: ConsumerWorld) -> None:
    (old,) = stable_classic_group(world, {"orders": [0]})
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.join("new").error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.logs[0].refusal = None
    assert heartbeat(world, old, 1) is ErrorCode.NONE
    world.advance(30_000)
    assert world.shard.state.groups[GROUP].is_empty, "its session still ends"


def test_the_changed_group_outlives_a_restart(world: ConsumerWorld) -> None:
    (old,) = stable_classic_group(world, {"orders": [0, 1, 2, 3]})
    world.join("new")
    before = world.group()
    world.crash()
    assert world.group().members == before.members
    assert heartbeat(world, old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
