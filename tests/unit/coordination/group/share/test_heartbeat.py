"""Members of share groups join, stay, leave and are fenced; partitions get their state before members do."""

import pytest
from tests.support.share_world import GROUP, ShareWorld

from ottla.coordination.group.settings import GroupSettings
from ottla.wire.coordinator_records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from ottla.wire.error_code import ErrorCode


@pytest.fixture
def world() -> ShareWorld:
    return ShareWorld(orders=4, other=2)


def test_a_partition_is_assigned_when_it_has_a_state(world: ShareWorld) -> None:
    answer = world.heartbeat("m", 0, "orders")
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (
        ErrorCode.NONE,
        2,
        5_000,
    )
    assert world.assigned(answer) == {}
    assert len(world.share_state.starts) == 4
    answer = world.heartbeat("m", 2)
    assert (answer.member_epoch, world.assigned(answer)) == (3, {"orders": [0, 1, 2, 3]})
    answer = world.heartbeat("m", 3)
    assert (answer.member_epoch, answer.assignment) == (3, None)


def test_the_records_of_a_join_are_kafkas_in_kafkas_order(world: ShareWorld) -> None:
    world.heartbeat("m", 0, "orders")
    assert [type(record.key) for record in world.records()] == [
        ShareGroupMemberMetadataKey,
        ShareGroupMetadataKey,
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupTargetAssignmentMetadataKey,
        ShareGroupCurrentMemberAssignmentKey,
        ShareGroupStatePartitionMetadataKey,
        ShareGroupStatePartitionMetadataKey,
    ]


def test_members_share_partitions_and_keep_what_they_have(world: ShareWorld) -> None:
    world.join("a")
    answer = world.join("b")
    second = world.assigned(answer)["orders"]
    first = world.assigned(world.heartbeat("a", 3, "orders"))["orders"]
    assert sorted(first + second) == [0, 1, 2, 3]
    assert len(first) == len(second) == 2
    for name in ("c", "d", "e"):
        world.join(name)
    targets = [target for target in world.group().targets.values() if target]
    assert len(targets) == 5, "each partition has two members at most, and everybody has one"


def test_a_failed_initialization_is_begun_again_with_the_next_heartbeat(world: ShareWorld) -> None:
    world.share_state.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = world.heartbeat("m", 0, "orders")
    assert world.group().state_topics.initializing == {}
    world.share_state.error_code = ErrorCode.NONE
    answer = world.heartbeat("m", answer.member_epoch)
    answer = world.heartbeat("m", answer.member_epoch)
    assert world.assigned(answer) == {"orders": [0, 1, 2, 3]}


def test_new_partitions_get_a_state_and_are_assigned(world: ShareWorld) -> None:
    epoch = world.join("m").member_epoch
    world.topics.grow("orders", 5)
    world.coordinator.topics_changed(["orders"], False)
    epoch = world.heartbeat("m", epoch).member_epoch
    answer = world.heartbeat("m", epoch)
    assert world.assigned(answer) == {"orders": [0, 1, 2, 3, 4]}


def test_an_epoch_that_nobody_was_given_is_fenced(world: ShareWorld) -> None:
    epoch = world.join("m").member_epoch
    assert world.heartbeat("m", epoch - 1).error_code is ErrorCode.NONE, "the answer may have been lost"
    assert world.heartbeat("m", epoch - 2).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.heartbeat("m", epoch + 1).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.heartbeat("x", epoch).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("m", 1, group_id="none").error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_requests_that_say_too_little_are_refused(world: ShareWorld) -> None:
    assert world.heartbeat("m", 0).error_code is ErrorCode.INVALID_REQUEST
    assert world.heartbeat("", 0, "orders").error_code is ErrorCode.INVALID_REQUEST
    assert world.heartbeat("m", -2).error_code is ErrorCode.INVALID_REQUEST
    assert world.heartbeat("m", 0, "orders", rack_id=" ").error_code is ErrorCode.INVALID_REQUEST


def test_a_full_group_takes_nobody_else() -> None:
    world = ShareWorld(GroupSettings(share_group_size_max=1))
    world.join("a")
    assert world.heartbeat("b", 0, "orders").error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_who_leaves_or_says_nothing_is_gone_and_the_group_stays(world: ShareWorld) -> None:
    world.join("a")
    world.join("b")
    assert world.heartbeat("a", -1).member_epoch == -1
    assert list(world.group().members) == ["b"]
    world.advance(45_001)
    assert world.group().state_name == "Empty"
    answers: list[ErrorCode] = []
    world.coordinator.delete_group(GROUP, lambda result: answers.append(result.error_code))
    world.settle()
    assert answers == [ErrorCode.NONE]
    assert world.shard.state.groups == {}
    assert world.share_state.starts == {}, "the states are deleted before the group"


def test_what_was_decided_survives_a_crash(world: ShareWorld) -> None:
    world.join("a")
    epoch = world.join("b", "orders", "other").member_epoch
    before = vars(world.group()).copy()
    world.crash()
    after = vars(world.group()).copy()
    for name in ("are_topics_checked", "initializing_since_ms", "_lacks_assignment"):
        del before[name], after[name]
    assert before == after
    assert world.heartbeat("b", epoch).error_code is ErrorCode.NONE


def test_topics_that_wait_for_their_state_are_asked_for_again_only_after_a_while(world: ShareWorld) -> None:
    asked: list[object] = []
    world.share_state.initialize = lambda *ask: asked.append(ask)  # type: ignore[method-assign]
    interval_ms = GroupSettings().share_initialize_retry_interval_ms
    epoch = world.heartbeat("m", 0, "orders").member_epoch
    assert len(asked) == 1
    written = len(world.records())
    waited_ms = 0
    while waited_ms < interval_ms - 5_000:
        world.advance(5_000)
        waited_ms += 5_000
        epoch = world.heartbeat("m", epoch).member_epoch
    assert len(asked) == 1
    assert len(world.records()) == written, "nor is it written with each heartbeat that it is under way"
    world.advance(interval_ms - waited_ms)
    world.heartbeat("m", epoch)
    assert len(asked) == 2
