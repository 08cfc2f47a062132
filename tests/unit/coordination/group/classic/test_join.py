"""JoinGroup: who comes in, who leads, which protocol is chosen, and what is written down."""

import pytest
from tests.support.classic_members import GROUP, RANGE, TestMember, bring_assignment, group_of, stable_group
from tests.support.group_requests import join_request, subscription
from tests.support.group_world import START_MS, GroupWorld

from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.environment import Client
from ottla.coordination.group.settings import GroupSettings
from ottla.wire.error_code import ErrorCode

OLD = Client("old", "/10.0.0.1", 3)


def test_a_new_member_is_told_its_id_first() -> None:
    world = GroupWorld()
    answer = world.ask("join_group", join_request(GROUP))
    assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == "client-1"
    assert group_of(world).pending_members == {"client-1"}
    assert group_of(world).state is GroupState.EMPTY


def test_an_old_client_joins_without_knowing_its_id() -> None:
    world = GroupWorld()
    answers = world.send("join_group", join_request(GROUP), OLD)
    world.advance(3000)
    assert answers[0].error_code is ErrorCode.NONE
    assert answers[0].member_id == "old-1"
    assert group_of(world).members["old-1"].client_host == "/10.0.0.1"


def test_a_new_group_is_written_down_though_it_is_empty() -> None:
    world = GroupWorld()
    world.ask("join_group", join_request(GROUP))
    (record,) = world.records()
    assert record.key.group == GROUP
    assert (record.value.generation, record.value.protocol_type, record.value.members) == (0, "", ())
    assert record.value.current_state_timestamp == START_MS
    assert record.value_version == 3


def test_a_group_that_cannot_be_written_down_does_not_exist() -> None:
    world = GroupWorld()
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    answers = world.send("join_group", join_request(GROUP), OLD)
    assert [answer.error_code for answer in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert world.shard.state.groups == {}
    world.logs[0].refusal = None
    world.advance(60_000)
    assert world.shard.state.groups == {}


def test_only_the_leader_learns_of_the_members() -> None:
    world = GroupWorld()
    members = [TestMember(world) for _ in range(3)]
    joins = [member.join() for member in members]
    world.advance(6000)
    leader, *others = [member.joined(answer) for member, answer in zip(members, joins, strict=True)]
    assert [entry.member_id for entry in leader.members] == [member.member_id for member in members]
    assert {entry.metadata for entry in leader.members} == {RANGE[0][1]}
    assert leader.leader == leader.member_id
    for other in others:
        assert other.members == ()
        assert other.leader == leader.member_id
        assert other.generation_id == leader.generation_id == 1


def test_the_protocol_is_one_that_all_know_and_most_prefer() -> None:
    world = GroupWorld()
    known = [("a", "c", "b"), ("b", "c", "a"), ("c", "b"), ("b", "c"), ("c", "a", "b")]
    members = [TestMember(world, protocols=tuple((name, b"") for name in names)) for names in known]
    joins = [member.join() for member in members]
    world.advance(20_000)
    assert {answer[0].protocol_name for answer in joins} == {"c"}


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", RANGE), ("consumer", (("sticky", b""),)), ("consumer", ()), ("", RANGE)],
)
def test_who_shares_no_protocol_with_the_group_stays_out(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    world = GroupWorld()
    stable_group(world)
    answer = world.ask("join_group", join_request(GROUP, protocol_type=protocol_type, protocols=protocols))
    assert answer.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group_of(world).state is GroupState.STABLE


def test_when_a_member_goes_its_protocols_count_no_more() -> None:
    world = GroupWorld()
    narrow, wide = TestMember(world, protocols=(("a", b""),)), TestMember(world)
    wide.protocols = (("a", b""), ("b", b""))
    joins = [narrow.join(), wide.join()]
    world.advance(6000)
    for member, answer in zip((narrow, wide), joins, strict=True):
        member.joined(answer)
    only_b = TestMember(world, protocols=(("b", b""),))
    assert only_b.join()[0].error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    narrow.leave()
    assert only_b.join() == []
    wide.joined(wide.join())
    assert group_of(world).protocol_name == "b"
    assert group_of(world).protocol_counts == {"a": 1, "b": 2}


def test_sessions_must_have_a_length_that_is_allowed() -> None:
    world = GroupWorld(GroupSettings(min_session_timeout_ms=100, max_session_timeout_ms=200))
    for length_ms in (99, 201):
        answer = world.ask("join_group", join_request(GROUP, session_timeout_ms=length_ms))
        assert answer.error_code is ErrorCode.INVALID_SESSION_TIMEOUT
    answer = world.ask("join_group", join_request(GROUP, session_timeout_ms=200))
    assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED


def test_an_id_that_was_never_handed_out_is_unknown() -> None:
    world = GroupWorld()
    refused = ErrorCode.UNKNOWN_MEMBER_ID
    assert world.ask("join_group", join_request(GROUP, "made up")).error_code is refused
    stable_group(world)
    assert world.ask("join_group", join_request(GROUP, "made up")).error_code is refused


def test_a_lost_answer_is_given_again_while_the_assignment_is_awaited() -> None:
    world = GroupWorld()
    member = TestMember(world)
    answers = member.join()
    world.advance(3000)
    first = member.joined(answers)
    assert member.join() == [first]
    assert group_of(world).generation == 1


def test_a_follower_that_joins_again_unchanged_disturbs_nobody() -> None:
    world = GroupWorld()
    _, follower = stable_group(world, 2)
    answer = follower.joined(follower.join())
    assert answer.generation_id == 1
    assert answer.members == ()
    assert group_of(world).state is GroupState.STABLE


def test_a_join_that_is_sent_twice_is_answered_once_for_the_newer() -> None:
    world = GroupWorld()
    member = TestMember(world)
    assert member.join() == []
    older_and_newer = [member.join(), member.join()]
    world.advance(3000)
    assert older_and_newer[0] == []
    assert older_and_newer[1][0].error_code is ErrorCode.NONE
    assert group_of(world).awaiting_join_count == 0


def test_a_leader_that_leaves_makes_room_for_another() -> None:
    world = GroupWorld()
    leader, other = stable_group(world, 2)
    leader.leave()
    assert other.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    answer = other.joined(other.join())
    assert answer.leader == other.member_id
    assert [entry.member_id for entry in answer.members] == [other.member_id]


def test_a_full_group_takes_nobody() -> None:
    world = GroupWorld(GroupSettings(classic_group_size_max=2))
    members = stable_group(world, 2)
    answer = world.ask("join_group", join_request(GROUP))
    assert answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answer.member_id == ""
    members[1].leave()
    members[0].joined(members[0].join())
    assert TestMember(world).join() == []


def test_while_a_group_prepares_those_who_come_first_stay() -> None:
    world = GroupWorld(GroupSettings(classic_group_size_max=2))
    leader, follower = stable_group(world, 2)
    waiting = leader.join()
    newcomer = TestMember(world)
    assert newcomer.join() == [], "one place is not taken yet"
    assert waiting == []
    assert follower.join()[0].error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert waiting[0].generation_id == 2, "nobody is waited for any more"
    assert group_of(world).members.keys() == {leader.member_id, newcomer.member_id}


def test_a_group_larger_than_allowed_rebalances_when_it_is_loaded() -> None:
    world = GroupWorld()
    members = stable_group(world, 3)
    world.settings = GroupSettings(classic_group_size_max=2)
    world.crash()
    assert group_of(world).state is GroupState.PREPARING_REBALANCE
    first, second = members[0].join(), members[1].join()
    assert members[2].join()[0].error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first[0].error_code is second[0].error_code is ErrorCode.NONE


def test_subscriptions_of_a_generation_are_known() -> None:
    world = GroupWorld()
    members = [
        TestMember(world, protocols=(("range", subscription("orders")),)),
        TestMember(world, protocols=(("range", subscription("other", "third")),)),
    ]
    joins = [member.join() for member in members]
    world.advance(6000)
    for member, answer in zip(members, joins, strict=True):
        member.joined(answer)
    assert group_of(world).subscribed_topics == frozenset(("orders", "other", "third"))
    bring_assignment(members)
    world.crash()
    assert group_of(world).subscribed_topics == frozenset(("orders", "other", "third"))


def test_bytes_that_are_no_subscription_leave_the_topics_unknown() -> None:
    world = GroupWorld()
    member = TestMember(world, protocols=(("range", b"\x00"),))
    joins = member.join()
    world.advance(3000)
    member.joined(joins)
    assert group_of(world).subscribed_topics is None
    assert group_of(world).is_subscribed_to("anything"), "in doubt it is"
