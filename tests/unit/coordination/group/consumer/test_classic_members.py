"""Members of the classic protocol in a consumer group."""

import pytest
from tests.support.consumer_world import GROUP, ConsumerWorld
from tests.unit.coordination.group.consumer.classic_consumers import (
    NEWEST_JOIN,
    heartbeat,
    join,
    join_new,
    leave,
    opened,
    sync,
)

from ottla.coordination.group.environment import Client
from ottla.coordination.group.kinds import Commit
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol


def new_world(**settings: object) -> ConsumerWorld:
    world = ConsumerWorld(
        GroupSettings(initial_rebalance_delay_ms=0, **settings),  # type: ignore[arg-type]
        orders=4,
        other=2,
    )
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    world.join("new")
    return world


@pytest.fixture
def world() -> ConsumerWorld:
    """A consumer group of one member that has everything."""
    return new_world()


def settle(world: ConsumerWorld) -> str:
    """Let a classic member in, and both have half. Return its id."""
    (joined,) = join_new(world)
    world.heartbeat("new", 2)
    world.heartbeat("new", 2, owned={"orders": [0, 1]})
    member_id: str = joined.member_id
    assert heartbeat(world, member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS, "there is something to get"
    (joined,) = join(world, member_id)
    assert opened(sync(world, member_id, joined.generation_id).assignment) == {"orders": [2, 3]}
    assert world.group().state_name == "Stable"
    return member_id


def test_a_classic_member_is_answered_at_once_and_leads_nobody(world: ConsumerWorld) -> None:
    (joined,) = join_new(world)
    assert joined.error_code is ErrorCode.NONE
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert (joined.generation_id, joined.leader, joined.members) == (3, "", ())


def test_old_versions_join_without_asking_for_an_id(world: ConsumerWorld) -> None:
    (joined,) = join(world, "", client=Client("c", "/h", 3))
    assert joined.error_code is ErrorCode.NONE
    assert joined.member_id in world.group().members


def test_both_protocols_share_the_partitions(world: ConsumerWorld) -> None:
    settle(world)


def test_sync_tells_what_the_member_has(world: ConsumerWorld) -> None:
    (joined,) = join_new(world)
    answer = sync(world, joined.member_id, 3, protocol_type="consumer", protocol_name="range")
    assert (answer.error_code, answer.protocol_type, answer.protocol_name) == (
        ErrorCode.NONE,
        "consumer",
        "range",
    )
    assert opened(answer.assignment) == {}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "new", "generation": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_that_does_not_fit_is_refused(
    world: ConsumerWorld, fields: dict[str, object], expected: ErrorCode
) -> None:
    (joined,) = join_new(world)
    asked = {"member_id": joined.member_id, "generation": 3, **fields}
    assert sync(world, **asked).error_code is expected


def test_a_sync_after_a_newer_target_asks_to_join_again(world: ConsumerWorld) -> None:
    (joined,) = join_new(world)
    world.heartbeat("new", 2, subscribed_topic_names=("orders", "other"))
    assert sync(world, joined.member_id, 3).error_code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_heartbeat_says_when_there_is_something_to_do(world: ConsumerWorld) -> None:
    member_id = settle(world)
    assert heartbeat(world, member_id, 3) is ErrorCode.NONE
    assert heartbeat(world, member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(world, "x", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    world.join("third")
    assert heartbeat(world, member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_while_others_hold_what_it_waits_for_there_is_nothing_to_do(world: ConsumerWorld) -> None:
    (joined,) = join_new(world)
    assert heartbeat(world, joined.member_id, 3) is ErrorCode.NONE


def test_a_classic_member_that_does_not_join_again_is_taken_out(world: ConsumerWorld) -> None:
    member_id = settle(world)
    world.join("third")
    for _ in range(20):
        heartbeat(world, member_id, 3)
        world.heartbeat("new", 3)
        world.heartbeat("third", 4)
        world.advance(1_000)
    assert member_id not in world.group().members


def test_a_classic_member_that_does_not_sync_is_taken_out(world: ConsumerWorld) -> None:
    (joined,) = join_new(world)
    for _ in range(20):
        heartbeat(world, joined.member_id, 3)
        world.heartbeat("new", 2)
        world.advance(1_000)
    assert joined.member_id not in world.group().members


def test_a_classic_member_that_goes_silent_is_taken_out_after_its_own_session(world: ConsumerWorld) -> None:
    member_id = settle(world)
    world.advance(29_000)
    world.heartbeat("new", 3)
    world.advance(1_000)
    assert member_id not in world.group().members


def test_protocols_of_classic_members_must_have_one_in_common(world: ConsumerWorld) -> None:
    join_new(world, protocols=("range", "sticky"))
    (refused,) = join(world, "", protocols=("mine",))
    assert refused.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (refused,) = join(world, "", protocols=())
    assert refused.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (welcome,) = join(world, "", protocols=("sticky", "mine"))
    assert welcome.error_code is ErrorCode.MEMBER_ID_REQUIRED


def test_only_consumers_may_join(world: ConsumerWorld) -> None:
    ask = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=1_000,
        member_id="",
        protocol_type="connect",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    assert world.ask("join_group", ask, NEWEST_JOIN).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_without_migration_classic_members_stay_outside() -> None:
    world = new_world(may_upgrade=False, may_downgrade=False)
    (refused,) = join(world, "")
    assert refused.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_no_classic_member() -> None:
    world = new_world(consumer_group_size_max=1)
    (refused,) = join(world, "")
    assert refused.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_blob_that_cannot_be_read_is_our_error_as_in_kafka(world: ConsumerWorld) -> None:
    ask = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=1_000,
        member_id="m",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\x00"),),
    )
    assert world.ask("join_group", ask, NEWEST_JOIN).error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_leaving_names_each_member_on_its_own(world: ConsumerWorld) -> None:
    (joined,) = join_new(world)
    codes = leave(world, (joined.member_id, None), ("x", None), ("new", None), ("", "i"))
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert world.group().is_empty


def test_an_administrator_removes_a_static_member_by_its_instance_id(world: ConsumerWorld) -> None:
    world.join("static", instance_id="i")
    assert leave(world, ("other", "i")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert leave(world, ("", "i")) == [ErrorCode.NONE]
    assert set(world.group().members) == {"new"}


def test_a_static_classic_member_takes_the_place_of_the_one_before(world: ConsumerWorld) -> None:
    (first,) = join(world, "", instance_id="i")
    (second,) = join(world, "", instance_id="i")
    assert first.member_id != second.member_id
    assert heartbeat(world, first.member_id, first.generation_id, "i") is ErrorCode.FENCED_INSTANCE_ID
    assert world.group().static_members == {"i": second.member_id}


def test_a_member_goes_over_to_the_new_protocol_under_its_instance_id(world: ConsumerWorld) -> None:
    (first,) = join(world, "", instance_id="i")
    answer = world.join("fresh", instance_id="i")
    assert answer.error_code is ErrorCode.NONE, "a classic member need not leave first"
    assert set(world.group().members) == {"new", "fresh"}
    assert first.member_id not in world.group().members


def test_commits_of_classic_members_go_by_generations(world: ConsumerWorld) -> None:
    member_id = settle(world)
    group = world.group()
    group.check_commit(Commit(member_id, None, 3, False, 5))
    with pytest.raises(Refused) as refused:
        group.check_commit(Commit(member_id, None, 4, False, 5))
    assert refused.value.error_code is ErrorCode.ILLEGAL_GENERATION
    old = Commit(member_id, None, 2, False, 5)
    with pytest.raises(Refused) as refused:
        group.check_commit_to(old, "orders", world.id_of("orders"), 2)
    assert refused.value.error_code is ErrorCode.ILLEGAL_GENERATION


def test_a_join_to_an_empty_consumer_group_makes_it_classic(world: ConsumerWorld) -> None:
    world.heartbeat("new", -1)
    (refused,) = join(world, "somebody")
    assert refused.error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group().is_empty
    (joined,) = join_new(world)
    assert joined.leader == joined.member_id
    world.crash()
    assert world.shard.state.find_classic(GROUP) is not None
