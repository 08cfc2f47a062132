"""What happens when nobody comes: sessions, rebalances, syncs, ids that were handed out, the first delay."""

import pytest
from tests.support.classic_members import GROUP, TestMember, bring_assignment, group_of, stable_group
from tests.support.group_requests import commit_request, join_request
from tests.support.group_world import GroupWorld

from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.environment import Client
from ottla.coordination.group.settings import GroupSettings
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode


def test_the_first_rebalance_waits_for_more_members() -> None:
    world = GroupWorld()
    first = TestMember(world).join()
    world.advance(2999)
    assert first == []
    world.advance(1)
    assert first[0].error_code is ErrorCode.NONE


def test_each_newcomer_prolongs_the_first_delay_up_to_the_rebalance_timeout() -> None:
    world = GroupWorld()
    first = TestMember(world).join()
    others = []
    for _ in range(9):
        world.advance(2000)
        others.append(TestMember(world).join())
    assert first == [], "18 of 20 seconds have passed"
    world.advance(2000)
    assert first[0].generation_id == 1
    assert all(others)
    assert len(first[0].members) == 10


@pytest.mark.parametrize("timeout_ms", [0, -1, -(1 << 31)])
def test_a_member_that_wants_no_time_for_a_rebalance_is_out_at_once(timeout_ms: int) -> None:
    world = GroupWorld()
    request = replace(join_request(GROUP), rebalance_timeout_ms=timeout_ms)
    refused = world.ask("join_group", request)
    assert refused is not None
    answers = world.send("join_group", replace(request, member_id=refused.member_id))
    world.advance(3000)
    assert answers[0].error_code is ErrorCode.NONE
    world.advance(0)
    assert group_of(world).state is GroupState.EMPTY


def test_version_0_has_one_timeout_for_both() -> None:
    world = GroupWorld()
    request = replace(join_request(GROUP, session_timeout_ms=7_000), rebalance_timeout_ms=-1)
    answers = world.send("join_group", request, Client("client", "/127.0.0.1", 0))
    world.advance(3000)
    assert answers[0].error_code is ErrorCode.NONE
    assert group_of(world).rebalance_timeout_ms == 7_000
    world.advance(6_999)
    assert group_of(world).state is GroupState.COMPLETING_REBALANCE
    world.advance(1)
    assert group_of(world).state is GroupState.EMPTY


def test_a_later_rebalance_does_not_wait() -> None:
    world = GroupWorld()
    leader, follower = stable_group(world, 2)
    newcomer = TestMember(world).join()
    leader.join()
    assert follower.join()[0].generation_id == 2
    assert newcomer[0].generation_id == 2


def test_a_silent_member_is_out_when_its_session_ends() -> None:
    world = GroupWorld()
    leader, silent = stable_group(world, 2)
    world.advance(9_999)
    assert leader.beat() is ErrorCode.NONE
    world.advance(1)
    assert silent.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.joined(leader.join()).generation_id == 2


def test_the_last_silent_member_leaves_an_empty_group() -> None:
    world = GroupWorld()
    stable_group(world)
    world.advance(10_000)
    assert group_of(world).state is GroupState.EMPTY
    assert world.records()[-1].value.members == ()


def test_heartbeats_keep_a_session() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    for _ in range(10):
        world.advance(9_000)
        assert member.beat() is ErrorCode.NONE


def test_commits_keep_a_session() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    for offset in range(5):
        world.advance(9_000)
        request = commit_request(GROUP, {0: offset}, generation=1, member_id=member.member_id)
        answer = world.ask("commit_offsets", request)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


def test_refused_commits_keep_no_session() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    for _ in range(2):
        world.advance(4_500)
        world.ask("commit_offsets", commit_request(GROUP, {0: 1}, generation=7, member_id=member.member_id))
    world.advance(1_000)
    assert group_of(world).state is GroupState.EMPTY


def test_a_member_whose_join_is_parked_is_not_silent() -> None:
    world = GroupWorld()
    leader, follower = stable_group(world, 2)
    waiting = leader.join()
    for _ in range(3):
        world.advance(5_000)
        follower.beat()
    assert waiting == []
    assert leader.member_id in group_of(world).members


def test_who_does_not_join_again_in_time_is_out() -> None:
    world = GroupWorld()
    leader, late = stable_group(world, 2)
    waiting = leader.join()
    for _ in range(4):
        world.advance(5_000)
        late.beat()
    assert waiting[0].generation_id == 2
    assert late.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert group_of(world).members.keys() == {leader.member_id}


def test_a_leader_that_does_not_join_again_is_replaced() -> None:
    world = GroupWorld()
    late_leader, other = stable_group(world, 2)
    other.protocols = (("range", b"changed"),)
    waiting = other.join()
    for _ in range(4):
        world.advance(5_000)
        late_leader.beat()
    assert waiting[0].leader == other.member_id


def test_a_group_in_which_only_silent_static_members_are_left_waits_on() -> None:
    world = GroupWorld()
    leader, other = stable_group(world, 2, ("a", "b"))
    leader.session_timeout_ms = other.session_timeout_ms = 1_000_000
    for member in (leader, other):
        member.member_id = ""
        member.joined(member.join())
    gone = TestMember(world)
    gone.join()
    gone.leave()
    # Nobody joins again. The rebalance starts over instead of making a generation without anybody.
    world.advance(25_000)
    assert group_of(world).state is GroupState.PREPARING_REBALANCE
    assert len(group_of(world).members) == 2


def test_who_does_not_ask_for_its_assignment_in_time_is_out() -> None:
    world = GroupWorld()
    members = [TestMember(world), TestMember(world)]
    joins = [member.join() for member in members]
    world.advance(6_000)
    for member, answer in zip(members, joins, strict=True):
        member.joined(answer)
    leader, lazy = members
    leader.sync({leader.member_id: b"x"})
    for _ in range(4):
        world.advance(5_000)
        lazy.beat()
        leader.beat()
    assert lazy.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.beat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_whose_members_all_synced_has_no_deadline_for_it() -> None:
    world = GroupWorld()
    leader, other = stable_group(world, 2)
    for _ in range(6):
        world.advance(5_000)
        assert leader.beat() is other.beat() is ErrorCode.NONE


def test_an_id_that_is_not_used_is_forgotten() -> None:
    world = GroupWorld()
    member_id = world.ask("join_group", join_request(GROUP, session_timeout_ms=10_000)).member_id
    world.advance(9_999)
    assert group_of(world).pending_members == {member_id}
    world.advance(1)
    assert group_of(world).pending_members == set()
    assert world.ask("join_group", join_request(GROUP, member_id)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_goes_on_when_the_id_it_waits_for_is_forgotten() -> None:
    world = GroupWorld()
    (leader,) = stable_group(world)
    world.ask("join_group", join_request(GROUP))
    answers = leader.join()
    assert answers == []
    world.advance(10_000)
    assert answers[0].generation_id == 2


def test_a_new_member_that_vanishes_while_its_join_is_parked_is_out_in_the_end() -> None:
    world = GroupWorld(GroupSettings(new_member_join_timeout_ms=7_000))
    leader, follower = stable_group(world, 2)
    newcomer = TestMember(world)
    waiting = newcomer.join()
    world.advance(6_999)
    assert leader.beat() is follower.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert waiting == []
    world.advance(1)
    assert waiting[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer.member_id not in group_of(world).members


def test_loaded_members_have_their_whole_session() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    world.advance(9_000)
    world.crash()
    world.advance(9_000)
    assert member.beat() is ErrorCode.NONE
    world.crash()
    world.advance(10_000)
    assert group_of(world).state is GroupState.EMPTY


def test_a_jump_of_the_wall_clock_ends_no_session() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    world.clock.wall_ms += 86_400_000
    world.settle()
    assert member.beat() is ErrorCode.NONE


def test_a_group_that_went_through_many_generations_has_only_live_timers() -> None:
    world = GroupWorld(GroupSettings(initial_rebalance_delay_ms=0))
    member = TestMember(world)
    for _ in range(50):
        member.joined(member.join())
        bring_assignment([member])
    timers = world.shard.state.env.timers
    wanted = (("session", GROUP, member.member_id), ("sync", GROUP), ("expiry",))
    assert [name in timers for name in wanted] == [True, True, True]
    assert len(timers) == 3
