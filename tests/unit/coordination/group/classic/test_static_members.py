"""Static members (KIP-345): they come back under a new id, and nobody else notices."""

import pytest
from tests.support.classic_members import GROUP, TestMember, group_of, stable_group
from tests.support.group_requests import commit_request, join_request, leave_request
from tests.support.group_world import GroupWorld

from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.environment import Client
from ottla.wire.error_code import ErrorCode

V8 = Client("client", "/127.0.0.1", 8)


def restarted(member: TestMember) -> TestMember:
    return TestMember(member.world, instance_id=member.instance_id)


def test_a_restart_is_no_rebalance() -> None:
    world = GroupWorld()
    leader, other = stable_group(world, 2, ("a", "b"))
    back = restarted(other)
    answer = back.joined(back.join())
    assert answer.generation_id == 1
    assert answer.member_id != other.member_id
    assert answer.skip_assignment is False
    assert group_of(world).state is GroupState.STABLE
    assert leader.beat() is ErrorCode.NONE
    assert back.sync()[0].assignment == b"for " + other.member_id.encode()


def test_a_leader_that_is_back_is_told_to_leave_the_assignment_alone() -> None:
    world = GroupWorld()
    leader, other = stable_group(world, 2, ("a", "b"))
    back = restarted(leader)
    answer = back.joined(back.join())
    assert answer.skip_assignment is True
    assert answer.leader == back.member_id
    assert {entry.group_instance_id for entry in answer.members} == {"a", "b"}
    assert other.beat() is ErrorCode.NONE


def test_an_old_client_is_told_that_its_old_self_leads() -> None:
    """It would assign anew if it were told that it leads."""
    world = GroupWorld()
    (leader,) = stable_group(world, 1, ("a",))
    answer = world.ask("join_group", join_request(GROUP, instance_id="a", protocols=leader.protocols), V8)
    assert answer.leader == leader.member_id != answer.member_id
    assert answer.members == ()
    assert answer.skip_assignment is False


def test_the_old_id_is_fenced() -> None:
    world = GroupWorld()
    (old,) = stable_group(world, 1, ("a",))
    back = restarted(old)
    back.joined(back.join())
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert old.beat() is fenced
    assert old.leave() is fenced
    assert old.sync()[0].error_code is fenced
    assert old.join()[0].error_code is fenced
    commit = commit_request(GROUP, {0: 1}, generation=1, member_id=old.member_id, instance_id="a")
    assert world.ask("commit_offsets", commit).topics[0].partitions[0].error_code is fenced
    assert back.beat() is ErrorCode.NONE


def test_the_new_id_is_on_disk_before_it_is_told() -> None:
    world = GroupWorld()
    (old,) = stable_group(world, 1, ("a",))
    world.syncs_by_itself = False
    back = restarted(old)
    answers = back.join()
    assert answers == []
    world.crash()
    assert group_of(world).static_members == {"a": old.member_id}
    world.syncs_by_itself = True
    again = restarted(old)
    again.joined(again.join())
    world.crash()
    assert group_of(world).static_members == {"a": again.member_id}


def test_a_new_id_that_cannot_be_stored_is_taken_back() -> None:
    world = GroupWorld()
    (old,) = stable_group(world, 1, ("a",))
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = restarted(old).join()[0]
    assert answer.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.member_id == ""
    assert old.beat() is ErrorCode.NONE
    assert group_of(world).static_members == {"a": old.member_id}
    assert group_of(world).awaiting_join_count == 0


def test_coming_back_twice_at_once_fences_the_first() -> None:
    world = GroupWorld()
    (old,) = stable_group(world, 1, ("a",))
    world.syncs_by_itself = False
    first, second = restarted(old), restarted(old)
    first_answers, second_answers = first.join(), second.join()
    assert first_answers[0].error_code is ErrorCode.FENCED_INSTANCE_ID
    assert second_answers == []
    world.sync()
    assert second_answers[0].error_code is ErrorCode.NONE
    assert group_of(world).static_members == {"a": second_answers[0].member_id}
    assert len(group_of(world).members) == 1


def test_another_protocol_is_a_rebalance() -> None:
    world = GroupWorld()
    both = (("range", b""), ("sticky", b""))
    member = TestMember(world, instance_id="a", protocols=both)
    joins = member.join()
    world.advance(3000)
    member.joined(joins)
    member.sync({member.member_id: b"x"})
    back = TestMember(world, instance_id="a", protocols=(("sticky", b""),))
    answer = back.joined(back.join())
    assert (answer.generation_id, answer.protocol_name) == (2, "sticky")


def test_a_restart_during_a_rebalance_counts_as_joining() -> None:
    world = GroupWorld()
    leader, other = stable_group(world, 2, ("a", "b"))
    newcomer = TestMember(world)
    waiting = [newcomer.join(), leader.join()]
    back = restarted(other)
    joined = back.joined(back.join())
    assert joined.generation_id == 2
    assert all(waiting)


def test_a_restart_while_the_assignment_is_awaited_starts_the_rebalance_anew() -> None:
    world = GroupWorld()
    members = [TestMember(world, instance_id=name) for name in ("a", "b")]
    joins = [member.join() for member in members]
    world.advance(6000)
    for member, answer in zip(members, joins, strict=True):
        member.joined(answer)
    leader, other = members
    waiting = other.sync()
    back = restarted(other)
    assert back.join() == []
    assert waiting[0].error_code is ErrorCode.FENCED_INSTANCE_ID
    assert leader.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.joined(leader.join()).generation_id == 2


def test_a_static_member_may_be_away_until_its_session_ends() -> None:
    world = GroupWorld()
    leader, away = stable_group(world, 2, ("a", "b"))
    leader.session_timeout_ms = 60_000
    # A rebalance starts and its time runs out while the other is away: it stays a member.
    answers = leader.join()
    world.advance(8_000)
    assert answers == []
    back = restarted(away)
    back.joined(back.join())
    assert answers[0].generation_id == 2


@pytest.mark.parametrize("member_id", ["", "its own"])
def test_an_administrator_removes_a_static_member_by_its_instance_id(member_id: str) -> None:
    world = GroupWorld()
    (member,) = stable_group(world, 1, ("a",))
    who = member.member_id if member_id else ""
    answer = world.ask("leave_group", leave_request(GROUP, (who, "a")))
    assert answer.members[0].error_code is ErrorCode.NONE
    assert group_of(world).static_members == {}
    assert group_of(world).state is GroupState.EMPTY


@pytest.mark.parametrize(("instance_id", "prefix"), [("a", "a-"), ("", "-")])
def test_the_id_of_a_static_member_begins_with_its_instance_id(instance_id: str, prefix: str) -> None:
    """Also if that is empty: it is still not the client's id that counts."""
    (member,) = stable_group(GroupWorld(), 1, (instance_id,))
    assert member.member_id.startswith(prefix)
