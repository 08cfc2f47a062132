"""Members join, stay and are fenced."""

import pytest
from tests.support.consumer_world import GROUP, ConsumerWorld

from ottla.coordination.group.consumer.reconciliation import MemberState
from ottla.coordination.group.environment import Client
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ottla.wire.error_code import ErrorCode


@pytest.fixture
def world() -> ConsumerWorld:
    world = ConsumerWorld(orders=4, other=2)
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    return world


def test_the_first_member_gets_everything_in_epoch_2(world: ConsumerWorld) -> None:
    answer = world.join("m")
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "m", 2)
    assert answer.heartbeat_interval_ms == 5_000
    assert world.assigned(answer) == {"orders": [0, 1, 2, 3]}
    assert world.group().state_name == "Stable"


def test_the_records_of_a_join_are_kafkas_in_kafkas_order(world: ConsumerWorld) -> None:
    world.join("m")
    assert [type(record.key) for record in world.records()] == [
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupCurrentMemberAssignmentKey,
    ]
    assert len(world.logs[0].stored) == 1, "all or none of them happen"


def test_a_heartbeat_without_news_writes_and_tells_nothing(world: ConsumerWorld) -> None:
    world.join("m")
    # The first one after a join looks at the topics once more.
    world.heartbeat("m", 2)
    written = len(world.records())
    answer = world.heartbeat("m", 2)
    assert (answer.member_epoch, answer.assignment) == (2, None)
    assert len(world.records()) == written


def test_a_full_request_is_told_the_assignment_again(world: ConsumerWorld) -> None:
    world.join("m")
    answer = world.heartbeat(
        "m", 2, rebalance_timeout_ms=60_000, subscribed_topic_names=("orders",), owned={"orders": [0, 1]}
    )
    assert world.assigned(answer) == {"orders": [0, 1, 2, 3]}


def test_a_second_member_waits_for_the_first_to_give_up(world: ConsumerWorld) -> None:
    world.join("a")
    answer = world.join("b")
    assert (answer.member_epoch, world.assigned(answer)) == (3, {})
    assert world.group().members["b"].assignment.state is MemberState.UNRELEASED_PARTITIONS

    answer = world.heartbeat("a", 2)
    assert (answer.member_epoch, world.assigned(answer)) == (2, {"orders": [0, 1]})
    assert world.heartbeat("b", 3).assignment is None, "the first has not given up yet"

    answer = world.heartbeat("a", 2, owned={"orders": [0, 1]})
    assert (answer.member_epoch, answer.assignment) == (3, None)
    answer = world.heartbeat("b", 3)
    assert (answer.member_epoch, world.assigned(answer)) == (3, {"orders": [2, 3]})
    assert world.group().state_name == "Stable"


def test_the_state_of_the_group_follows_its_members(world: ConsumerWorld) -> None:
    world.intervals = ConsumerIntervals(assignment_interval_ms=1_000)
    world.join("a")
    world.join("b")
    assert world.group().state_name == "Assigning"
    world.advance(1_000)
    world.heartbeat("a", 2)
    assert world.group().state_name == "Reconciling"


def test_targets_are_not_computed_more_often_than_the_interval(world: ConsumerWorld) -> None:
    world.intervals = ConsumerIntervals(assignment_interval_ms=1_000)
    world.join("a")
    for name in "bcd":
        assert world.join(name).member_epoch == 2, "in the epoch of the last target, without partitions"
    assert (world.group().epoch, world.group().assignment_epoch) == (5, 2)
    world.advance(999)
    world.heartbeat("a", 2)
    assert world.group().assignment_epoch == 2
    world.advance(1)
    world.heartbeat("a", 2)
    assert world.group().assignment_epoch == 5


def test_a_group_may_have_times_of_its_own(world: ConsumerWorld) -> None:
    world.own_intervals[GROUP] = ConsumerIntervals(60_000, 7_000, 0)
    assert world.join("m").heartbeat_interval_ms == 7_000
    world.advance(59_000)
    assert "m" in world.group().members
    world.advance(1_000)
    assert "m" not in world.group().members


def test_version_0_gets_a_member_id(world: ConsumerWorld) -> None:
    answer = world.join("", client=Client("c", "/h", 0))
    assert answer.member_id
    assert answer.member_id in world.group().members


def test_the_group_must_exist_but_for_joining(world: ConsumerWorld) -> None:
    assert world.heartbeat("m", 1).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.heartbeat("m", -1).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_unknown_member_must_join(world: ConsumerWorld) -> None:
    world.join("m")
    assert world.heartbeat("other", 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_epoch_from_the_future_is_fenced(world: ConsumerWorld) -> None:
    world.join("m")
    answer = world.heartbeat("m", 3)
    assert answer.error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert "2" in answer.error_message


def test_the_epoch_before_is_fine_if_the_member_owns_no_more_than_it_has(world: ConsumerWorld) -> None:
    """The answer with the new epoch may have been lost."""
    world.join("m")
    world.heartbeat("m", 2, subscribed_topic_names=("orders", "other"))
    assert world.group().members["m"].epoch == 3
    answer = world.heartbeat("m", 2, owned={"orders": [0, 1]})
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 3)
    assert world.heartbeat("m", 2).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.heartbeat("m", 2, owned={"orders": [9]}).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.heartbeat("m", 1, owned={}).error_code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_joins_again_under_its_id(world: ConsumerWorld) -> None:
    world.join("m")
    answer = world.join("m")
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
    assert world.assigned(answer) == {"orders": [0, 1, 2, 3]}


def test_a_full_group_lets_only_its_members_in() -> None:
    world = ConsumerWorld(GroupSettings(consumer_group_size_max=1))
    world.join("a")
    assert world.join("b").error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.join("a").error_code is ErrorCode.NONE


def test_a_changed_subscription_changes_the_assignment(world: ConsumerWorld) -> None:
    world.join("m")
    answer = world.heartbeat("m", 2, subscribed_topic_names=("other",))
    assert (answer.member_epoch, world.assigned(answer)) == (2, {})
    answer = world.heartbeat("m", 2, owned={})
    assert (answer.member_epoch, world.assigned(answer)) == (3, {"other": [0, 1]})


def test_another_rack_is_written_down_without_a_rebalance(world: ConsumerWorld) -> None:
    world.join("m")
    world.heartbeat("m", 2, rack_id="r")
    assert world.group().members["m"].rack_id == "r"
    assert world.group().epoch == 2


def test_members_vote_for_an_assignor(world: ConsumerWorld) -> None:
    for name, wish in (("a", "range"), ("b", "range"), ("c", "uniform"), ("d", None)):
        world.join(name, server_assignor=wish)
    assert world.group().preferred_assignor() == "range"
    targets = world.group().targets
    assert [sorted(targets[name][world.id_of("orders")]) for name in "abcd"] == [[0], [1], [2], [3]]


def test_an_assignor_that_this_node_lacks_gives_way_to_the_default(world: ConsumerWorld) -> None:
    """Another cluster may have written the group."""
    world.join("a", server_assignor="range")
    world.coordinator.settings = world.settings = GroupSettings(consumer_assignors=("uniform",))
    world.crash()
    assert world.heartbeat("a", 2, subscribed_topic_names=("orders", "other")).error_code is ErrorCode.NONE
    assert world.group().assignment_epoch == 3


# Topics that change


def test_new_partitions_reach_the_group(world: ConsumerWorld) -> None:
    world.join("m")
    world.topics.grow("orders", 6)
    world.topics_changed("orders")
    answer = world.heartbeat("m", 2)
    assert (answer.member_epoch, world.assigned(answer)) == (3, {"orders": [0, 1, 2, 3, 4, 5]})


def test_a_topic_that_is_created_later_reaches_the_group(world: ConsumerWorld) -> None:
    world.join("m", "orders", "later")
    world.topics.create("later", 1)
    world.topics_changed("later", has_new=True)
    assert world.assigned(world.heartbeat("m", 2)) == {"orders": [0, 1, 2, 3], "later": [0]}


def test_a_deleted_topic_is_given_up(world: ConsumerWorld) -> None:
    world.join("m", "orders", "other")
    world.topics.delete("other")
    world.topics_changed("other")
    answer = world.heartbeat("m", 2)
    assert (answer.member_epoch, world.assigned(answer)) == (2, {"orders": [0, 1, 2, 3]})
    answer = world.heartbeat("m", 2, owned={"orders": [0, 1, 2, 3]})
    assert (answer.member_epoch, answer.assignment) == (3, None)


def test_a_topic_that_is_created_again_is_another_topic(world: ConsumerWorld) -> None:
    world.join("m", "other")
    before = world.id_of("other")
    world.topics.delete("other")
    world.topics.create("other", 2)
    world.topics_changed("other", has_new=True)
    answer = world.heartbeat("m", 2)
    assert world.assigned(answer) == {}
    answer = world.heartbeat("m", 2, owned={})
    assert world.assigned(answer) == {"other": [0, 1]}
    assert before not in world.group().members["m"].assignment.assigned


def test_topics_that_nobody_subscribes_to_concern_nobody(world: ConsumerWorld) -> None:
    world.join("m")
    world.heartbeat("m", 2)
    world.topics.grow("other", 9)
    world.topics_changed("other")
    written = len(world.records())
    assert world.heartbeat("m", 2).member_epoch == 2
    assert len(world.records()) == written


def test_topics_that_changed_while_nobody_was_there_are_noticed(world: ConsumerWorld) -> None:
    world.join("m")
    world.topics.grow("orders", 5)
    world.crash()
    assert world.assigned(world.heartbeat("m", 2)) == {"orders": [0, 1, 2, 3, 4]}


def test_a_refused_write_changes_nothing(world: ConsumerWorld) -> None:
    world.join("m")
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = world.heartbeat("m", 2, subscribed_topic_names=("other",))
    assert answer.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group().members["m"].topic_names == {"orders"}
    world.logs[0].refusal = None
    assert world.assigned(world.heartbeat("m", 2, subscribed_topic_names=("other",))) == {}


def test_topics_are_looked_at_again_when_the_new_epoch_was_never_written(world: ConsumerWorld) -> None:
    world.join("m")
    world.topics.grow("orders", 6)
    world.topics_changed("orders")
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    world.heartbeat("m", 2)
    world.logs[0].refusal = None
    assert world.heartbeat("m", 2).member_epoch == 3
