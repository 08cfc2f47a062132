"""OffsetFetch: what was committed, for whom it is not there, and what is not settled yet."""

from typing import Any

from tests.support.classic_members import GROUP
from tests.support.group_requests import OTHER_TOPIC, TOPIC, commit_request
from tests.support.group_world import GroupWorld, topic_id

from ottla.coordination.group.offsets.committed_offsets import commit_record
from ottla.coordination.runtime.decision import Decision, ProducerIdentity
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

PRODUCER = ProducerIdentity(1, 0)


def fetch(
    world: GroupWorld,
    partitions: tuple[int, ...] | None,
    *,
    group: str = GROUP,
    require_stable: bool = False,
    wanted_id: Uuid = ZERO_UUID,
) -> Any:
    topics = None
    if partitions is not None:
        topics = (OffsetFetchRequestTopics(name=TOPIC, topic_id=wanted_id, partition_indexes=partitions),)
    answers: list[Any] = []
    ask = OffsetFetchRequestGroup(group_id=group, topics=topics)
    world.coordinator.fetch_offsets(ask, require_stable, answers.append)
    return answers[0] if answers else None


def pending(world: GroupWorld, partition: int, offset: int) -> None:
    """An open transaction commits an offset."""
    record = commit_record(GROUP, TOPIC, partition, offset, 0, "", 1, -1, ZERO_UUID)
    world.shard.write(lambda _: Decision((record,), "done"), lambda _: None, lambda _: None, PRODUCER)
    world.sync()


def offsets(answer: Any) -> dict[int, int]:
    return {part.partition_index: part.committed_offset for part in answer.topics[0].partitions}


def test_offsets_are_given_as_they_were_committed() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 5, 1: 6}))
    answer = fetch(world, (1, 0))
    assert [(part.partition_index, part.committed_offset) for part in answer.topics[0].partitions] == [
        (1, 6), (0, 5),
    ]  # fmt: skip
    part = answer.topics[0].partitions[0]
    assert (part.committed_leader_epoch, part.metadata, part.error_code) == (0, "note", ErrorCode.NONE)


def test_what_was_never_committed_is_minus_one_and_no_error() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 5}))
    (part,) = fetch(world, (2,)).topics[0].partitions
    assert (part.committed_offset, part.committed_leader_epoch, part.metadata) == (-1, -1, "")
    assert offsets(fetch(world, (0,), group="nobody")) == {0: -1}
    assert fetch(world, None, group="nobody").topics == ()


def test_all_offsets_are_given_by_topic() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 5, 2: 6}))
    world.ask("commit_offsets", commit_request(GROUP, {1: 7}, topic=OTHER_TOPIC))
    answer = fetch(world, None)
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {TOPIC: 2, OTHER_TOPIC: 1}


def test_offsets_of_an_open_transaction_are_unstable_for_who_cares() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 5, 1: 6}))
    pending(world, 0, 50)
    assert offsets(fetch(world, (0, 1))) == {0: 5, 1: 6}
    for asked in ((0, 1), None):
        parts = fetch(world, asked, require_stable=True).topics[0].partitions
        assert [(part.committed_offset, part.error_code) for part in parts] == [
            (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), (6, ErrorCode.NONE),
        ]  # fmt: skip
    world.shard.end_transaction(PRODUCER, True, world.logs[0].append_marker(PRODUCER, True))
    world.sync()
    assert offsets(fetch(world, (0, 1), require_stable=True)) == {0: 50, 1: 6}


def test_pending_offsets_and_their_marker_survive_a_crash() -> None:
    world = GroupWorld()
    pending(world, 0, 50)
    world.crash()
    assert fetch(world, (0,), require_stable=True).topics[0].partitions[0].error_code is not ErrorCode.NONE
    world.shard.end_transaction(PRODUCER, True, world.logs[0].append_marker(PRODUCER, True))
    world.sync()
    world.crash()
    assert offsets(fetch(world, (0,), require_stable=True)) == {0: 50}


def test_an_offset_of_a_topic_that_is_gone_is_not_given_for_its_successor() -> None:
    world = GroupWorld()
    world.ask("commit_offsets", commit_request(GROUP, {0: 5}, topic_id=topic_id(TOPIC)))
    assert offsets(fetch(world, (0,), wanted_id=topic_id(TOPIC))) == {0: 5}
    assert offsets(fetch(world, (0,), wanted_id=Uuid(b"another topic id"))) == {0: -1}
    assert offsets(fetch(world, (0,))) == {0: 5}


def test_nobody_learns_of_an_offset_that_a_crash_could_take_back() -> None:
    world = GroupWorld()
    world.syncs_by_itself = False
    world.send("commit_offsets", commit_request(GROUP, {0: 5}))
    answers: list[Any] = []
    topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),)
    world.coordinator.fetch_offsets(
        OffsetFetchRequestGroup(group_id=GROUP, topics=topics), False, answers.append
    )
    assert answers == []
    world.sync()
    assert offsets(answers[0]) == {0: 5}


def test_a_shard_that_loads_refuses_the_whole_group() -> None:
    world = GroupWorld()
    assert world.coordinator.shards.elect(0, 99, world.logs[0]) is not None
    answer = fetch(world, (0,))
    assert answer.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert answer.topics == ()
