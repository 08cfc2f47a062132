"""A commit that is made again decides what any other commit would."""

from tests.classic_members import GROUP, stable_group
from tests.group_requests import TOPIC, commit_request
from tests.group_world import START_MS, GroupWorld, topic_id

from ottla.coordination.group.coordinator import _decide_commit
from ottla.coordination.group.environment import Client
from ottla.coordination.group.offsets.repeated import RepeatedCommit
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


def test_records_and_journal_are_those_of_any_commit() -> None:
    world = GroupWorld()
    ask = member_commit(world, OFFSETS)
    state = world.shard.state
    expected = _decide_commit(state, ask, CLIENT, START_MS)
    decision = RepeatedCommit(ask, VERSION).decide(state, (5, 7), START_MS, None)
    assert decision is not None
    assert decision.records == expected.records
    assert [type(record.value) for record in decision.records] == [
        type(record.value) for record in expected.records
    ]
    first, second = world.coordinator.journal.of(GROUP)[-2:]
    assert first == second


def test_who_commits_again_lives() -> None:
    world = GroupWorld()
    ask = member_commit(world, OFFSETS)
    repeated = RepeatedCommit(ask, VERSION)
    for _ in range(10):
        world.advance(5_000)
        assert repeated.decide(world.shard.state, (5, 7), world.clock.now_ms(), None) is not None
    world.advance(60_000)
    assert repeated.decide(world.shard.state, (5, 7), world.clock.now_ms(), None) is None


def test_another_generation_is_not_decided_on() -> None:
    world = GroupWorld()
    repeated = RepeatedCommit(member_commit(world, OFFSETS, generation=99), VERSION)
    assert repeated.decide(world.shard.state, (5, 7), START_MS, None) is None


def test_a_group_that_is_not_there_is_not_decided_on() -> None:
    world = GroupWorld()
    repeated = RepeatedCommit(commit_request(GROUP, OFFSETS), VERSION)
    assert repeated.decide(world.shard.state, (5, 7), START_MS, None) is None
