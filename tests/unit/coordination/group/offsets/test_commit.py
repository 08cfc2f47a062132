"""OffsetCommit and TxnOffsetCommit: who may, and what is written down."""

import pytest
from tests.support.classic_members import GROUP, TestMember, group_of, stable_group
from tests.support.group_requests import TOPIC, commit_request
from tests.support.group_world import START_MS, GroupWorld, topic_id

from ottla.coordination.group.environment import Client
from ottla.coordination.group.offsets.commit import decide_transactional_commit
from ottla.coordination.group.settings import GroupSettings
from ottla.coordination.runtime.decision import Decision
from ottla.model.ids import TopicPartition
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)


def commit(
    world: GroupWorld, version: int = 9, group: str = GROUP, generation: int = -1, member_id: str = ""
) -> ErrorCode:
    request = commit_request(
        group, {0: 5}, generation=generation, member_id=member_id, topic_id=topic_id(TOPIC)
    )
    answer = world.ask("commit_offsets", request, Client("client", "/127.0.0.1", version))
    code: ErrorCode = answer.topics[0].partitions[0].error_code
    return code


def test_a_commit_without_a_group_makes_one() -> None:
    world = GroupWorld()
    assert commit(world) is ErrorCode.NONE
    (record,) = world.records()
    assert record.value_version == 4
    assert (record.value.offset, record.value.leader_epoch, record.value.metadata) == (5, 0, "note")
    assert record.value.commit_timestamp == START_MS
    assert record.value.topic_id == topic_id(TOPIC)
    assert group_of(world).protocol_type is None


def test_an_answer_waits_for_the_disk() -> None:
    world = GroupWorld()
    world.syncs_by_itself = False
    answers = world.send("commit_offsets", commit_request(GROUP, {0: 5}))
    assert answers == []
    world.crash()
    assert world.shard.state.offsets.of_group(GROUP) == {}
    assert answers == [], "who was not answered may try again"


def test_what_was_answered_survives_a_crash() -> None:
    world = GroupWorld()
    commit(world)
    world.crash()
    committed = world.shard.state.offsets.find(GROUP, TopicPartition(TOPIC, 0))
    assert committed is not None
    assert committed.offset == 5


@pytest.mark.parametrize(
    ("version", "expected"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_member_of_no_group_cannot_commit(version: int, expected: ErrorCode) -> None:
    assert commit(GroupWorld(), version, generation=0, member_id="m") is expected


@pytest.mark.parametrize(
    ("generation", "is_known", "expected"),
    [
        (1, True, ErrorCode.NONE),
        (0, True, ErrorCode.ILLEGAL_GENERATION),
        (2, True, ErrorCode.ILLEGAL_GENERATION),
        (1, False, ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, True, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_only_members_of_the_generation_commit(generation: int, is_known: bool, expected: ErrorCode) -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    who = member.member_id if is_known else "stranger"
    assert commit(world, generation=generation, member_id=who) is expected


def test_nobody_commits_past_the_members_of_a_group() -> None:
    world = GroupWorld()
    stable_group(world)
    assert commit(world) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_may_commit_until_the_next_generation_and_then_learns_first_what_it_reads() -> None:
    world = GroupWorld()
    leader, follower = stable_group(world, 2)
    TestMember(world).join()
    assert commit(world, generation=1, member_id=follower.member_id) is ErrorCode.NONE
    answers = [leader.join(), follower.join()]
    leader.joined(answers[0])
    assert commit(world, generation=1, member_id=leader.member_id) is ErrorCode.ILLEGAL_GENERATION
    assert commit(world, generation=2, member_id=leader.member_id) is ErrorCode.REBALANCE_IN_PROGRESS


def test_each_partition_has_its_own_answer() -> None:
    world = GroupWorld(GroupSettings(offset_metadata_bytes_max=4))
    good = commit_request(GROUP, {0: 1}, metadata="1234")
    long = commit_request(GROUP, {1: 2}, metadata="12345")
    partitions = (*good.topics[0].partitions, *long.topics[0].partitions)
    answer = world.ask(
        "commit_offsets", replace(good, topics=(replace(good.topics[0], partitions=partitions),))
    )
    assert [part.error_code for part in answer.topics[0].partitions] == [
        ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ]  # fmt: skip
    assert len(world.records()) == 1


def test_a_retention_time_of_old_versions_is_kept() -> None:
    world = GroupWorld()
    request = replace(commit_request(GROUP, {0: 5}), retention_time_ms=1_000)
    world.ask("commit_offsets", request, Client("client", "/127.0.0.1", 2))
    (record,) = world.records()
    assert record.value_version == 1
    assert record.value.expire_timestamp == START_MS + 1_000


def test_a_refused_append_is_told_for_every_partition() -> None:
    world = GroupWorld()
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = world.ask("commit_offsets", commit_request(GROUP, {0: 1, 1: 2}))
    assert {part.error_code for part in answer.topics[0].partitions} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert world.shard.state.groups == {}


def test_a_refused_commit_writes_nothing() -> None:
    world = GroupWorld()
    commit(world)
    assert commit(world, generation=4, member_id="m") is ErrorCode.UNKNOWN_MEMBER_ID
    (record,) = world.records()
    assert (record.key.topic, record.key.partition, record.value.offset) == (TOPIC, 0, 5)


def transactional(world: GroupWorld, generation: int, member_id: str) -> Decision[TxnOffsetCommitResponse]:
    ask = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=GROUP,
        producer_id=1,
        producer_epoch=0,
        generation_id=generation,
        member_id=member_id,
        topics=(
            TxnOffsetCommitRequestTopic(
                name=TOPIC,
                partitions=(
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=5, committed_metadata=None
                    ),
                ),
            ),
        ),
    )
    return decide_transactional_commit(group_of(world), ask, 3, world.shard.state.env, world.clock.now_ms())


def test_a_transaction_may_commit_also_while_an_assignment_is_awaited() -> None:
    world = GroupWorld()
    member = TestMember(world)
    joins = member.join()
    world.advance(3000)
    member.joined(joins)
    decision = transactional(world, 1, member.member_id)
    (record,) = decision.records
    assert record.value.topic_id == topic_id(TOPIC)
    assert record.value.metadata == ""
    assert decision.reply is not None
    assert decision.reply.topics[0].partitions[0].error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("generation", "member_id", "expected"),
    [
        (3, "", ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, "stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, "", ErrorCode.NONE),
    ],
)
def test_a_transaction_of_a_stranger_is_refused(generation: int, member_id: str, expected: ErrorCode) -> None:
    world = GroupWorld()
    stable_group(world)
    decision = transactional(world, generation, member_id)
    assert decision.reply is not None
    assert decision.reply.topics[0].partitions[0].error_code is expected
    assert bool(decision.records) is (expected is ErrorCode.NONE)
