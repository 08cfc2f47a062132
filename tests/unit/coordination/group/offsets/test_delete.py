"""Offsets that are deleted: on request, with their group, with their topic."""

from typing import Any

from tests.support.classic_members import GROUP, stable_group
from tests.support.group_requests import OTHER_TOPIC, TOPIC, commit_request, delete_offsets_request
from tests.support.group_world import GroupWorld, topic_id

from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode


def committed(world: GroupWorld, group: str = GROUP) -> set[TopicPartition]:
    return set(world.shard.state.offsets.of_group(group))


def delete_group(world: GroupWorld, group: str = GROUP) -> ErrorCode:
    answers: list[Any] = []
    world.coordinator.delete_group(group, answers.append)
    world.settle()
    code: ErrorCode = answers[0].error_code
    return code


def test_offsets_go_on_request_and_stay_gone() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 1, 1: 2}))
    answer = world.ask("delete_offsets", delete_offsets_request(GROUP, TOPIC, 0, 2))
    assert [part.error_code for part in answer.topics[0].partitions] == [ErrorCode.NONE, ErrorCode.NONE]
    world.crash()
    assert committed(world) == {TopicPartition(TOPIC, 1)}


def test_offsets_of_a_topic_that_somebody_reads_stay() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    for topic in (TOPIC, OTHER_TOPIC):
        request = commit_request(GROUP, {0: 1}, topic=topic, generation=1, member_id=member.member_id)
        world.ask("commit_offsets", request)
    answer = world.ask("delete_offsets", delete_offsets_request(GROUP, TOPIC, 0))
    assert answer.topics[0].partitions[0].error_code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    answer = world.ask("delete_offsets", delete_offsets_request(GROUP, OTHER_TOPIC, 0))
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE
    assert committed(world) == {TopicPartition(TOPIC, 0)}


def test_a_group_that_is_not_there_has_no_offsets_to_delete() -> None:
    answer = GroupWorld().ask("delete_offsets", delete_offsets_request(GROUP, TOPIC, 0))
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_goes_with_its_offsets_in_one_batch() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 1, 1: 2}))
    before = len(world.logs[0].stored)
    assert delete_group(world) is ErrorCode.NONE
    (batch,) = world.logs[0].stored[before:]
    assert [value for _, value in batch.encoded] == [None, None, None]
    world.crash()
    assert world.shard.state.groups == {}
    assert committed(world) == set()
    assert delete_group(world) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_members_stays() -> None:
    world = GroupWorld()
    (member,) = stable_group(world)
    assert delete_group(world) is ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert delete_group(world) is ErrorCode.NONE
    assert world.shard.state.groups == {}
    assert world.records()[-1].value is None


def test_offsets_go_with_their_topic() -> None:
    world = GroupWorld(partitions=3)
    groups = [f"group-{number}" for number in range(6)]
    for group in groups:
        for topic in (TOPIC, OTHER_TOPIC):
            world.ask("commit_offsets", commit_request(group, {0: 1}, topic=topic, topic_id=topic_id(topic)))
    world.coordinator.topics_deleted([(TOPIC, topic_id(TOPIC))])
    world.crash(kept=1)
    for shard in world.coordinator.shards:
        for group in shard.state.groups:
            assert set(shard.state.offsets.of_group(group)) == {TopicPartition(OTHER_TOPIC, 0)}


def test_offsets_of_a_new_topic_of_the_same_name_stay() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 1}, topic_id=topic_id(TOPIC)))
    world.coordinator.topics_deleted([(TOPIC, Uuid(b"an older topic's"))])
    assert committed(world) == {TopicPartition(TOPIC, 0)}


def test_what_belongs_to_no_topic_id_goes_with_the_name() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 1}))
    world.coordinator.topics_deleted([(TOPIC, topic_id(TOPIC))])
    assert committed(world) == set()
