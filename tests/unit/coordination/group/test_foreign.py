"""Share and streams groups that another coordinator left: known, and left alone."""

from typing import Any

from tests.support.classic_members import GROUP
from tests.support.group_requests import TOPIC, commit_request, delete_offsets_request, join_request
from tests.support.group_world import GroupWorld

from ottla.coordination.group.foreign import ForeignGroup
from ottla.coordination.group.kinds import GroupKind
from ottla.coordination.group.settings import GroupSettings
from ottla.model.ids import TopicPartition
from ottla.wire.coordinator_records import share_group, streams_group
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

SHARE = CoordinatorRecord(
    share_group.ShareGroupMetadataKey(group_id=GROUP),
    share_group.ShareGroupMetadataValue(epoch=3, metadata_hash=1),
    0,
)
STREAMS = CoordinatorRecord(
    streams_group.StreamsGroupMetadataKey(group_id=GROUP),
    streams_group.StreamsGroupMetadataValue(epoch=3, metadata_hash=1),
    0,
)
STREAMS_MEMBER = streams_group.StreamsGroupMemberMetadataKey(group_id=GROUP, member_id="m")


def world_with(*records: CoordinatorRecord, settings: GroupSettings | None = None) -> GroupWorld:
    world = GroupWorld(settings)
    world.logs[0].append(records, None, True)
    world.sync()
    world.crash()
    return world


def found(world: GroupWorld) -> ForeignGroup:
    group = world.shard.state.groups[GROUP]
    assert isinstance(group, ForeignGroup)
    return group


def commit(world: GroupWorld, generation: int = -1) -> ErrorCode:
    answer = world.ask("commit_offsets", commit_request(GROUP, {0: 1}, generation=generation, member_id="m"))
    code: ErrorCode = answer.topics[0].partitions[0].error_code
    return code


def test_its_id_is_not_free() -> None:
    for record, kind in ((SHARE, GroupKind.SHARE), (STREAMS, GroupKind.STREAMS)):
        world = world_with(record)
        assert found(world).kind is kind
        answer = world.ask("join_group", join_request(GROUP))
        assert answer.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        answers: list[Any] = []
        world.coordinator.delete_group(GROUP, answers.append)
        assert answers[0].error_code is ErrorCode.NON_EMPTY_GROUP
        world.coordinator.list_groups((), (kind.value,), answers.append)
        assert [group.group_id for group in answers[1]] == [GROUP]


def test_nobody_commits_in_the_name_of_its_members() -> None:
    assert commit(world_with(SHARE)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert commit(world_with(STREAMS), generation=3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world_with(STREAMS)) is ErrorCode.NONE


def test_members_are_known_by_their_records() -> None:
    value = streams_group.StreamsGroupMemberMetadataValue(
        instance_id=None, rack_id=None, client_id="c", client_host="h", rebalance_timeout_ms=1,
        topology_epoch=1, process_id="p", user_endpoint=None, client_tags=(),
    )  # fmt: skip
    world = world_with(STREAMS, CoordinatorRecord(STREAMS_MEMBER, value, 0))
    assert found(world).state_name == "Stable"
    assert commit(world) is ErrorCode.UNKNOWN_MEMBER_ID
    world.logs[0].append((CoordinatorRecord(STREAMS_MEMBER, None, -1),), None, True)
    world.sync()
    world.crash()
    assert found(world).state_name == "Empty"


def test_its_offsets_neither_expire_nor_are_they_deleted() -> None:
    settings = GroupSettings(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=100)
    world = world_with(STREAMS, settings=settings)
    commit(world)
    answer = world.ask("delete_offsets", delete_offsets_request(GROUP, TOPIC, 0))
    assert answer.error_code is ErrorCode.NON_EMPTY_GROUP
    world.advance(10_000)
    assert world.shard.state.offsets.find(GROUP, TopicPartition(TOPIC, 0)) is not None


def test_when_its_own_coordinator_took_it_away_it_is_gone() -> None:
    world = world_with(STREAMS, STREAMS._replace(value=None, value_version=-1))
    assert world.shard.state.groups == {}


def test_a_tombstone_of_a_group_that_is_not_there_is_fine() -> None:
    assert world_with(SHARE._replace(value=None, value_version=-1)).shard.state.groups == {}
