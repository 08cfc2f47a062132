"""When offsets expire (KIP-211), and groups with them."""

import dataclasses

import pytest
from tests.support.classic_members import GROUP, TestMember, group_of, stable_group
from tests.support.group_requests import OTHER_TOPIC, TOPIC, commit_request, join_request
from tests.support.group_world import GroupWorld, topic_id

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.environment import Client
from ottla.coordination.group.kinds import Group
from ottla.coordination.group.offsets.expiry import decide_expiry
from ottla.coordination.group.settings import GroupSettings
from ottla.coordination.group.share.group import ShareGroup
from ottla.coordination.group.share.state_topics import NamedPartitions, StateTopics
from ottla.coordination.group.state import GROUPS_EXPIRED_AT_ONCE
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.runtime.decision import Decision, ProducerIdentity
from ottla.model.ids import TopicPartition
from ottla.wire.coordinator_records.classic_group import GroupMetadataKey
from ottla.wire.coordinator_records.offsets import OffsetCommitKey
from ottla.wire.declare import replace

RETENTION_MS = 100_000
CHECK_MS = 10_000
SETTINGS = GroupSettings(
    offsets_retention_ms=RETENTION_MS,
    offsets_retention_check_interval_ms=CHECK_MS,
    max_session_timeout_ms=10**9,
)


def committed(world: GroupWorld, group: str = GROUP) -> set[str]:
    return {where.topic for where in world.shard.state.offsets.of_group(group)}


def commit(world: GroupWorld, member: TestMember | None = None, topic: str = TOPIC) -> None:
    generation, member_id = (-1, "") if member is None else (member.generation, member.member_id)
    request = commit_request(GROUP, {0: 1}, topic=topic, generation=generation, member_id=member_id)
    world.ask("commit_offsets", request)


def test_a_simple_consumers_offset_ages_from_its_commit_and_takes_the_group_with_it() -> None:
    world = GroupWorld(SETTINGS)
    commit(world)
    world.advance(RETENTION_MS - CHECK_MS)
    commit(world)
    world.advance(RETENTION_MS - 1)
    assert committed(world) == {TOPIC}, "the newer commit is not old enough"
    world.advance(CHECK_MS)
    assert committed(world) == set()
    assert world.shard.state.groups == {}
    assert [(type(record.key), record.value) for record in world.records()[-2:]] == [
        (OffsetCommitKey, None),
        (GroupMetadataKey, None),
    ]
    world.crash()
    assert world.shard.state.groups == {}


def test_offsets_of_an_empty_group_age_from_the_moment_it_became_empty() -> None:
    world = GroupWorld(SETTINGS)
    member = TestMember(world, session_timeout_ms=10**9)
    joins = member.join()
    world.advance(3000)
    member.joined(joins)
    member.sync({member.member_id: b""})
    commit(world, member)
    world.advance(5 * RETENTION_MS)
    assert committed(world) == {TOPIC}, "somebody reads it"
    member.leave()
    world.advance(RETENTION_MS - CHECK_MS)
    assert committed(world) == {TOPIC}
    world.crash()
    world.advance(2 * CHECK_MS)
    assert world.shard.state.groups == {}


def test_a_live_group_loses_only_offsets_of_topics_that_nobody_reads() -> None:
    world = GroupWorld(SETTINGS)
    member = TestMember(world, session_timeout_ms=10**9)
    joins = member.join()
    world.advance(3000)
    member.joined(joins)
    member.sync({member.member_id: b""})
    for topic in (TOPIC, OTHER_TOPIC):
        commit(world, member, topic)
    world.advance(RETENTION_MS + CHECK_MS)
    assert committed(world) == {TOPIC}
    assert group_of(world).members.keys() == {member.member_id}


def test_nothing_expires_while_a_group_rebalances() -> None:
    world = GroupWorld(dataclasses.replace(SETTINGS, new_member_join_timeout_ms=10**9))
    member = TestMember(world, session_timeout_ms=10**9)
    joins = member.join()
    world.advance(3000)
    member.joined(joins)
    member.sync({member.member_id: b""})
    commit(world, member, OTHER_TOPIC)
    world.ask("join_group", join_request(GROUP, session_timeout_ms=10**9))
    member.join()
    world.advance(19_000)
    world.clock.wall_ms += 2 * RETENTION_MS
    world.advance(900)
    assert committed(world) == {OTHER_TOPIC}


@pytest.mark.parametrize("retention_ms", [30_000, 300_000])
def test_an_expiry_that_the_client_set_counts_instead(retention_ms: int) -> None:
    world = GroupWorld(SETTINGS)
    request = replace(commit_request(GROUP, {0: 1}), retention_time_ms=retention_ms)
    world.ask("commit_offsets", request, Client("c", "/127.0.0.1", 2))
    world.advance(retention_ms - 1)
    assert committed(world) == {TOPIC}
    world.advance(CHECK_MS)
    assert committed(world) == set()


def test_an_offset_that_an_open_transaction_holds_stays() -> None:
    world = GroupWorld(SETTINGS)
    commit(world)
    record = world.records()[0]
    producer = ProducerIdentity(1, 0)
    world.shard.write(lambda _: Decision((record,), 1), lambda _: None, lambda _: None, producer)
    world.advance(RETENTION_MS + CHECK_MS)
    assert committed(world) == {TOPIC}
    world.shard.end_transaction(producer, False, world.logs[0].append_marker(producer, False))
    world.advance(CHECK_MS)
    assert world.shard.state.groups == {}


def test_a_group_with_only_pending_offsets_stays() -> None:
    world = GroupWorld(SETTINGS)
    commit(world)
    record = world.records()[0]
    world.shard.write(
        lambda _: Decision((record._replace(key=replace(record.key, group="other")),), 1),
        lambda _: None,
        lambda _: None,
        ProducerIdentity(1, 0),
    )
    world.advance(RETENTION_MS + CHECK_MS)
    assert world.shard.state.groups.keys() == {"other"}


def test_an_empty_group_without_offsets_goes_at_the_next_check() -> None:
    world = GroupWorld(SETTINGS)
    (member,) = stable_group(world)
    member.leave()
    world.advance(CHECK_MS)
    assert world.shard.state.groups == {}


def test_many_groups_expire_in_pieces_and_all_of_them() -> None:
    world = GroupWorld(SETTINGS)
    count = 2 * GROUPS_EXPIRED_AT_ONCE + 50
    for number in range(count):
        world.ask("commit_offsets", commit_request(f"group-{number}", {0: 1}))
    before = len(world.logs[0].stored)
    world.advance(RETENTION_MS + CHECK_MS)
    assert world.shard.state.groups == {}
    assert len(world.logs[0].stored) - before == 3
    world.crash()
    assert world.shard.state.groups == {}
    assert world.shard.state.offsets.find("group-0", TopicPartition(TOPIC, 0)) is None


def test_an_empty_share_group_stays_with_its_positions() -> None:
    """Its positions are in states that the share coordinator keeps: they would be lost with it."""
    world = GroupWorld(SETTINGS)
    group = ShareGroup(GROUP)
    group.put_state_topics(
        StateTopics(initialized={topic_id(TOPIC): NamedPartitions(TOPIC, frozenset((0,)))})
    )
    decision = decide_expiry([group], world.shard.state.offsets, world.shard.state.env, 10**12)
    assert decision.records == ()


@pytest.mark.parametrize("group", [ConsumerGroup(GROUP), StreamsGroup(GROUP), ClassicGroup(GROUP)])
def test_other_groups_without_members_and_offsets_go(group: Group) -> None:
    world = GroupWorld(SETTINGS)
    decision = decide_expiry([group], world.shard.state.offsets, world.shard.state.env, 10**12)
    assert decision.records == tuple(group.tombstones())
