"""Groups, listed and described."""

from typing import Any

import pytest
from tests.support.classic_members import GROUP, RANGE, TestMember, stable_group
from tests.support.group_requests import commit_request, join_request
from tests.support.group_world import GroupWorld

from ottla.coordination.group.environment import Client
from ottla.wire.error_code import ErrorCode


def listed(world: GroupWorld, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> Any:
    answers: list[Any] = []
    world.coordinator.list_groups(states, types, answers.append)
    return answers[0] if answers else None


def described(world: GroupWorld, group: str = GROUP, version: int = 6) -> Any:
    answers: list[Any] = []
    world.coordinator.describe_group(group, Client("c", "/127.0.0.1", version), answers.append)
    return answers[0]


def world_with_groups() -> GroupWorld:
    world = GroupWorld(partitions=4)
    for group in ("a", "b"):
        world.ask("commit_offsets", commit_request(group, {0: 1}))
    world.send("join_group", join_request("joining"), Client("old", "/127.0.0.1", 3))
    return world


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ((), (), ["a", "b", "joining"]),
        (("empty",), (), ["a", "b"]),
        ((" Empty", "PREPARINGREBALANCE"), (), ["a", "b", "joining"]),
        (("stable",), (), []),
        ((), ("CLASSIC",), ["a", "b", "joining"]),
        ((), ("consumer",), []),
        ((), ("nonsense",), []),
        (("empty",), ("classic", "consumer"), ["a", "b"]),
    ],
)
def test_groups_of_all_shards_are_listed(
    states: tuple[str, ...], types: tuple[str, ...], expected: list[str]
) -> None:
    assert sorted(group.group_id for group in listed(world_with_groups(), states, types)) == expected


def test_the_newest_group_of_a_shard_is_listed_first() -> None:
    world = GroupWorld(partitions=1)
    for group in ("b", "c", "a"):
        world.ask("commit_offsets", commit_request(group, {0: 1}))
    assert [group.group_id for group in listed(world)] == ["a", "c", "b"]


def test_a_listed_group_has_its_state_and_kind() -> None:
    world = GroupWorld()
    stable_group(world)
    (group,) = listed(world)
    assert (group.protocol_type, group.group_state, group.group_type) == ("consumer", "Stable", "classic")


def test_while_a_shard_loads_there_is_no_list() -> None:
    world = world_with_groups()
    assert world.coordinator.shards.elect(2, 99, world.logs[2]) is not None
    assert listed(world) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_node_without_shards_has_no_groups() -> None:
    world = GroupWorld()
    world.coordinator.shards.resign(0, 99)
    assert listed(world) == []


def test_the_list_waits_for_what_it_tells() -> None:
    world = world_with_groups()
    world.syncs_by_itself = False
    world.send("commit_offsets", commit_request("c", {0: 1}))
    assert listed(world) is None


def test_a_stable_group_is_described_in_full() -> None:
    world = GroupWorld()
    leader, other = stable_group(world, 2, ("instance",))
    group = described(world)
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    first, second = group.members
    assert (first.member_id, first.group_instance_id) == (leader.member_id, "instance")
    assert (second.client_id, second.client_host) == ("client", "/127.0.0.1")
    assert second.member_metadata == RANGE[0][1]
    assert second.member_assignment == b"for " + other.member_id.encode()


def test_a_group_that_rebalances_is_described_without_its_protocol() -> None:
    world = GroupWorld()
    stable_group(world)
    TestMember(world).join()
    group = described(world)
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert {member.member_metadata for member in group.members} == {b""}


@pytest.mark.parametrize(("version", "expected"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_an_unknown_group_is_dead(version: int, expected: ErrorCode) -> None:
    group = described(GroupWorld(), version=version)
    assert (group.group_state, group.error_code) == ("Dead", expected)
    assert group.error_message == (f"Group {GROUP} not found." if version == 6 else None)
