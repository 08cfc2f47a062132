"""SyncGroup, Heartbeat and LeaveGroup."""

from collections.abc import Callable

import pytest
from tests.support.classic_members import GROUP, TestMember, bring_assignment, group_of, stable_group
from tests.support.group_requests import heartbeat_request, join_request, leave_request, sync_request
from tests.support.group_world import GroupWorld

from ottla.coordination.group.classic.states import GroupState
from ottla.wire.error_code import ErrorCode


def completing(world: GroupWorld, size: int = 2) -> list[TestMember]:
    members = [TestMember(world) for _ in range(size)]
    joins = [member.join() for member in members]
    while not all(joins):
        world.advance(3000)
    for member, answer in zip(members, joins, strict=True):
        member.joined(answer)
    return members


def test_everybody_gets_what_the_leader_brings_once_it_is_on_disk() -> None:
    world = GroupWorld()
    leader, follower, forgotten = completing(world, 3)
    waiting = [follower.sync(), forgotten.sync()]
    world.syncs_by_itself = False
    brought = leader.sync({leader.member_id: b"a", follower.member_id: b"b"})
    assert waiting == [[], []]
    assert brought == []
    world.sync()
    assert brought[0].assignment == b"a"
    assert waiting[0][0].assignment == b"b"
    assert waiting[1][0].assignment == b"", "nothing was brought for it"
    assert waiting[0][0].protocol_type == "consumer"
    assert waiting[0][0].protocol_name == "range"


def test_the_generation_is_one_record() -> None:
    world = GroupWorld()
    members = completing(world)
    bring_assignment(members)
    record = world.records()[-1]
    assert record.value.generation == 1
    assert record.value.leader == members[0].member_id
    assert {item.member_id: item.assignment for item in record.value.members} == {
        member.member_id: b"for " + member.member_id.encode() for member in members
    }


def test_who_comes_late_gets_its_assignment_at_once() -> None:
    world = GroupWorld()
    leader, late = completing(world)
    leader.sync({late.member_id: b"x"})
    assert late.sync()[0].assignment == b"x"


def test_an_assignment_that_cannot_be_stored_starts_the_rebalance_anew() -> None:
    world = GroupWorld()
    leader, follower = completing(world)
    waiting = follower.sync()
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    brought = leader.sync({leader.member_id: b"a"})
    assert brought[0].error_code is waiting[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group_of(world).state is GroupState.PREPARING_REBALANCE
    world.logs[0].refusal = None
    joins = [leader.join(), follower.join()]
    assert [answer[0].generation_id for answer in joins] == [2, 2]


def test_an_assignment_that_somebody_overtakes_is_not_handed_out() -> None:
    world = GroupWorld()
    leader, follower = completing(world)
    waiting = follower.sync()
    world.syncs_by_itself = False
    brought = leader.sync({leader.member_id: b"a"})
    TestMember(world).join()
    assert brought[0].error_code is waiting[0].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    world.sync()
    assert group_of(world).state is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("arrange", [completing, stable_group], ids=["completing", "stable"])
def test_a_heartbeat_is_fine_but_for_a_rebalance(
    arrange: Callable[[GroupWorld, int], list[TestMember]],
) -> None:
    world = GroupWorld()
    members = arrange(world, 2)
    assert [member.beat() for member in members] == [ErrorCode.NONE, ErrorCode.NONE]
    TestMember(world).join()
    assert [member.beat() for member in members] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2


def test_heartbeats_of_the_past_and_of_strangers_are_refused() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    for generation in (0, 2):
        answer = world.ask("heartbeat", heartbeat_request(GROUP, generation, member.member_id))
        assert answer.error_code is ErrorCode.ILLEGAL_GENERATION
    assert world.ask("heartbeat", heartbeat_request(GROUP, 1, "x")).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.ask("heartbeat", heartbeat_request("y", 1, "x")).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_while_the_group_is_loaded_is_fine() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    assert world.coordinator.shards.elect(0, 99, world.logs[0]) is not None
    assert member.beat() is ErrorCode.NONE
    assert member.sync()[0].error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "expected"),
    [
        ("consumer", "range", ErrorCode.NONE),
        (None, None, ErrorCode.NONE),
        ("connect", "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_member_must_be_of_the_groups_protocol(
    protocol_type: str | None, protocol_name: str | None, expected: ErrorCode
) -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    request = sync_request(
        GROUP, 1, member.member_id, protocol_type=protocol_type, protocol_name=protocol_name
    )
    assert world.ask("sync_group", request).error_code is expected


def test_the_last_to_leave_empties_the_group_and_its_generation_goes_on() -> None:
    world = GroupWorld()
    first, second = stable_group(world, 2)
    assert first.leave() is ErrorCode.NONE
    assert second.leave() is ErrorCode.NONE
    record = world.records()[-1]
    assert record.value.members == ()
    assert record.value.generation == 2
    assert record.value.protocol_type == "consumer"
    assert record.value.protocol is None
    assert record.value.leader is None
    again = TestMember(world)
    joins = again.join()
    world.advance(3000)
    assert again.joined(joins).generation_id == 3


def test_one_who_cannot_leave_spoils_no_other() -> None:
    world = GroupWorld()
    first, second = stable_group(world, 2)
    answer = world.ask(
        "leave_group",
        leave_request(GROUP, ("stranger", None), (first.member_id, None), ("", "no instance"), ("", None)),
    )
    assert [item.error_code for item in answer.members] == [
        ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID,
    ]  # fmt: skip
    assert group_of(world).members.keys() == {second.member_id}


def test_an_id_that_is_given_back_holds_nobody_up() -> None:
    world = GroupWorld()
    leader, follower = stable_group(world, 2)
    pending = TestMember(world)
    answer = world.ask("join_group", join_request(GROUP))
    pending.member_id = answer.member_id
    joins = [leader.join(), follower.join()]
    assert joins == [[], []], "the id that was handed out is waited for"
    assert pending.leave() is ErrorCode.NONE
    assert all(joins)


def test_a_leave_request_of_a_parked_member_ends_its_wait() -> None:
    world = GroupWorld()
    stable_group(world, 2)
    newcomer = TestMember(world)
    waiting = newcomer.join()
    newcomer.leave()
    assert waiting[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_removed_while_it_waits_for_its_assignment_is_told() -> None:
    world = GroupWorld()
    _, follower = completing(world)
    waiting = follower.sync()
    follower.leave()
    assert waiting[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_resigning_tells_everybody_who_waits() -> None:
    world = GroupWorld()
    _, follower = completing(world)
    waiting = [follower.sync(), TestMember(world, group="g2").join()]
    timers = world.shard.state.env.timers
    world.coordinator.shards.resign(0, world.epoch)
    assert [answer[0].error_code for answer in waiting] == [ErrorCode.NOT_COORDINATOR] * 2
    assert len(timers) == 0
