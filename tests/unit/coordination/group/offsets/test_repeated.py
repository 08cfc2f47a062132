"""A commit that is made again decides what any other commit would."""

from tests.support.classic_members import GROUP, stable_group
from tests.support.group_requests import TOPIC, commit_request
from tests.support.group_world import START_MS, GroupWorld, topic_id

from ottla.coordination.group.environment import Client
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset, CommittedOffsets
from ottla.coordination.group.offsets.group_commit import decide_group_commit
from ottla.coordination.group.offsets.repeated import RepeatedCommit
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest

VERSION = 9
CLIENT = Client("client", "/127.0.0.1", VERSION)
OFFSETS = {0: 5, 2: 7}


def member_commit(world: GroupWorld, offsets: dict[int, int], generation: int = 0) -> OffsetCommitRequest:
    (member,) = stable_group(world, 1)
    return commit_request(
        GROUP,
        offsets,
        generation=generation or member.generation,
        member_id=member.member_id,
        topic_id=topic_id(TOPIC),
    )


def test_records_are_those_of_any_commit() -> None:
    world = GroupWorld()
    ask = member_commit(world, OFFSETS)
    state = world.shard.state
    expected = decide_group_commit(state, ask, CLIENT, START_MS)
    repeated = RepeatedCommit(ask, VERSION)
    records = repeated.records((5, 7), START_MS)
    assert tuple(records) == expected.records
    assert [type(record.value) for record in records] == [type(record.value) for record in expected.records]
    assert repeated.decide(state, (5, 7), START_MS, [b"5", b"7"]) is not None


def test_what_is_committed_is_what_the_records_say() -> None:
    world = GroupWorld()
    ask = member_commit(world, OFFSETS)
    repeated = RepeatedCommit(ask, VERSION)
    by_records, directly = CommittedOffsets(), world.shard.state.offsets
    by_records._place = directly._place
    for offsets, now_ms in [((5, 7), START_MS), ((6, 7), START_MS + 1), ((0, 1 << 60), START_MS + 2)]:
        for key, value, _ in repeated.records(offsets, now_ms):
            by_records.replay(key, value, None)
        decision = repeated.decide(world.shard.state, offsets, now_ms, [b"5", b"7"])
        assert decision is not None
        world.shard.state.replay(decision.records, None)
        assert dict(directly.of_group(GROUP)) == dict(by_records.of_group(GROUP))
        assert directly._place == by_records._place
    found = directly.of_group(GROUP)
    assert {type(where) for where in found} == {TopicPartition}
    assert {type(offset) for offset in found.values()} == {CommittedOffset}


def test_who_commits_again_lives() -> None:
    world = GroupWorld()
    ask = member_commit(world, OFFSETS)
    repeated = RepeatedCommit(ask, VERSION)
    for _ in range(10):
        world.advance(5_000)
        decision = repeated.decide(world.shard.state, (5, 7), world.clock.now_ms(), [b"5", b"7"])
        assert decision is not None
        world.shard.carry_out(decision, lambda _: None, lambda _: None)
    world.advance(60_000)
    assert repeated.decide(world.shard.state, (5, 7), world.clock.now_ms(), []) is None


def test_a_refused_repetition_is_no_sign_of_life() -> None:
    world = GroupWorld()
    repeated = RepeatedCommit(member_commit(world, OFFSETS), VERSION)
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(10):
        world.advance(5_000)
        decision = repeated.decide(world.shard.state, (5, 7), world.clock.now_ms(), [b"5", b"7"])
        if decision is None:
            break
        world.shard.carry_out(decision, lambda _: None, lambda _: None)
    else:
        raise AssertionError("the session never ended")


def test_another_generation_is_not_decided_on() -> None:
    world = GroupWorld()
    repeated = RepeatedCommit(member_commit(world, OFFSETS, generation=99), VERSION)
    assert repeated.decide(world.shard.state, (5, 7), START_MS, []) is None


def test_a_group_that_is_not_there_is_not_decided_on() -> None:
    world = GroupWorld()
    repeated = RepeatedCommit(commit_request(GROUP, OFFSETS), VERSION)
    assert repeated.decide(world.shard.state, (5, 7), START_MS, []) is None
