"""Describing consumer groups."""

from typing import Any

from tests.support.consumer_world import GROUP, ConsumerWorld
from tests.unit.coordination.group.consumer.classic_consumers import join_new

from ottla.coordination.group.settings import ConsumerIntervals
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import Assignment, DescribedGroup


def describe(world: ConsumerWorld, group_id: str = GROUP) -> DescribedGroup:
    answers: list[DescribedGroup] = []
    world.coordinator.describe_consumer_group(group_id, answers.append)
    return answers[0]


def shown(assignment: Assignment) -> dict[str, tuple[int, ...]]:
    return {topic.topic_name: topic.partitions for topic in assignment.topic_partitions}


def test_a_member_is_shown_with_what_it_has_and_shall_have() -> None:
    world = ConsumerWorld(orders=4)
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    world.join(
        "a", rack_id="r", instance_id="i", subscribed_topic_regex="none", subscribed_topic_names=("orders",)
    )
    world.join("b")
    world.heartbeat("a", 2, instance_id="i")
    group = describe(world)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "uniform"
    members: dict[str, Any] = {member.member_id: member for member in group.members}
    first = members["a"]
    assert (first.instance_id, first.rack_id, first.member_epoch) == ("i", "r", 2)
    assert (first.client_id, first.client_host) == ("client", "/127.0.0.1")
    assert (first.subscribed_topic_names, first.subscribed_topic_regex) == (("orders",), "none")
    assert shown(first.assignment) == {"orders": (0, 1, 2, 3)}, "what it has yet to give up it still has"
    assert shown(first.target_assignment) == {"orders": (0, 1)}
    assert shown(members["b"].assignment) == {}
    assert shown(members["b"].target_assignment) == {"orders": (2, 3)}
    assert first.member_type == 1


def test_the_newest_member_is_described_first() -> None:
    world = ConsumerWorld(orders=2)
    world.join("b")
    world.join("a")
    assert [member.member_id for member in describe(world).members] == ["a", "b"]


def test_classic_members_are_marked() -> None:
    world = ConsumerWorld(orders=2)
    world.join("new")
    (joined,) = join_new(world)
    kinds = {member.member_id: member.member_type for member in describe(world).members}
    assert kinds == {"new": 1, joined.member_id: 0}


def test_topics_that_are_gone_are_left_out() -> None:
    world = ConsumerWorld(orders=2, other=1)
    world.join("a", "orders", "other")
    world.topics.delete("other")
    (member,) = describe(world).members
    assert shown(member.assignment) == shown(member.target_assignment) == {"orders": (0, 1)}


def test_an_unknown_group_and_a_classic_one_are_not_found() -> None:
    world = ConsumerWorld()
    assert describe(world).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    join_new(world)
    answer = describe(world)
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "not a consumer group" in (answer.error_message or "")


def test_groups_are_listed_with_their_kind_and_state() -> None:
    world = ConsumerWorld(orders=1)
    world.join("a")
    listed: list[Any] = []
    world.coordinator.list_groups((), ("consumer",), listed.append)
    world.coordinator.list_groups(("empty",), (), listed.append)
    (group,) = listed[0]
    assert (group.group_id, group.group_type, group.group_state, group.protocol_type) == (
        GROUP, "consumer", "Stable", "consumer",
    )  # fmt: skip
    assert listed[1] == []
