"""Who may commit and fetch offsets of a consumer group."""

import pytest
from tests.support.consumer_world import GROUP, ConsumerWorld

from ottla.coordination.group.environment import Client
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup


@pytest.fixture
def world() -> ConsumerWorld:
    """A group in which member a has had partitions 0 and 1 since epoch 2, and 2 since epoch 4."""
    world = ConsumerWorld(orders=3, other=1)
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    world.join("a")
    world.join("b")
    world.heartbeat("a", 2, owned={"orders": [0, 1]})
    world.heartbeat("b", 3)
    world.heartbeat("b", -1)
    world.heartbeat("a", 3)
    epochs = world.group().members["a"].assignment.assigned[world.id_of("orders")]
    assert epochs == {0: 2, 1: 2, 2: 4}
    return world


def commit(
    world: ConsumerWorld,
    member_id: str,
    epoch: int,
    *partitions: int,
    topic: str = "orders",
    version: int = 9,
) -> list[ErrorCode]:
    ask = OffsetCommitRequest(
        group_id=GROUP,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=(
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=world.id_of(topic),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=number, committed_offset=7, committed_metadata=""
                    )
                    for number in partitions or (0,)
                ),
            ),
        ),
    )
    answer = world.ask("commit_offsets", ask, Client("c", "/h", version))
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


def test_a_member_commits_in_its_epoch(world: ConsumerWorld) -> None:
    assert commit(world, "a", 4) == [ErrorCode.NONE]


def test_in_its_epoch_a_member_commits_for_what_it_does_not_have_too(world: ConsumerWorld) -> None:
    assert commit(world, "a", 4, topic="other") == [ErrorCode.NONE]


def test_a_commit_from_just_before_counts_for_partitions_that_stayed(world: ConsumerWorld) -> None:
    """The member sent it before it learned of its new epoch."""
    assert commit(world, "a", 3, 0, 1) == [ErrorCode.NONE] * 2
    assert commit(world, "a", 2, 1) == [ErrorCode.NONE]


def test_a_commit_from_before_a_partition_was_assigned_is_stale(world: ConsumerWorld) -> None:
    assert commit(world, "a", 1) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert commit(world, "a", 3, 2) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert commit(world, "a", 3, 0, 2) == [ErrorCode.STALE_MEMBER_EPOCH] * 2, "all or nothing"
    assert commit(world, "a", 3, topic="other") == [ErrorCode.STALE_MEMBER_EPOCH]


def test_partitions_that_are_being_given_up_may_still_be_committed(world: ConsumerWorld) -> None:
    world.join("b")
    world.heartbeat("a", 4)
    pending = world.group().members["a"].assignment.pending_revocation
    (number,) = pending[world.id_of("orders")]
    world.heartbeat("a", 4)
    assert commit(world, "a", 4, number) == [ErrorCode.NONE]


def test_an_epoch_from_the_future_is_stale_too(world: ConsumerWorld) -> None:
    assert commit(world, "a", 5) == [ErrorCode.STALE_MEMBER_EPOCH]


def test_who_is_no_member_may_not_commit(world: ConsumerWorld) -> None:
    assert commit(world, "x", 4) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit(world, "", -1) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_members_of_the_new_protocol_need_version_9(world: ConsumerWorld) -> None:
    assert commit(world, "a", 4, version=8) == [ErrorCode.UNSUPPORTED_VERSION]


def test_anybody_may_commit_to_an_empty_group(world: ConsumerWorld) -> None:
    world.heartbeat("a", -1)
    assert commit(world, "", -1) == [ErrorCode.NONE]
    assert commit(world, "a", 4) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize(
    ("member_id", "epoch", "expected"),
    [
        (None, -1, ErrorCode.NONE),
        ("a", 4, ErrorCode.NONE),
        ("a", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 4, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 4, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_says_it_is_a_member_must_know_its_epoch_to_fetch(
    world: ConsumerWorld, member_id: str | None, epoch: int, expected: ErrorCode
) -> None:
    ask = OffsetFetchRequestGroup(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None)
    answers: list[ErrorCode] = []
    world.coordinator.fetch_offsets(ask, False, lambda answer: answers.append(answer.error_code))
    assert answers == [expected]


def test_offsets_of_topics_that_nobody_subscribes_to_expire() -> None:
    world = ConsumerWorld(
        GroupSettings(offsets_retention_ms=100_000, offsets_retention_check_interval_ms=10_000)
    )
    world.intervals = ConsumerIntervals(session_timeout_ms=1_000_000, assignment_interval_ms=0)
    world.join("a")
    assert commit(world, "a", 2) == [ErrorCode.NONE]
    assert commit(world, "a", 2, topic="other") == [ErrorCode.NONE]
    world.advance(120_000)
    assert [where.topic for where in world.shard.state.offsets.of_group(GROUP)] == ["orders"]
    world.heartbeat("a", -1)
    world.advance(120_000)
    assert GROUP not in world.shard.state.groups, "without members and offsets the group goes too"


def test_a_group_with_members_cannot_be_deleted(world: ConsumerWorld) -> None:
    codes: list[ErrorCode] = []
    world.coordinator.delete_group(GROUP, lambda answer: codes.append(answer.error_code))
    world.heartbeat("a", -1)
    world.coordinator.delete_group(GROUP, lambda answer: codes.append(answer.error_code))
    world.settle()
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    assert GROUP not in world.shard.state.groups
    world.crash()
    assert GROUP not in world.shard.state.groups
