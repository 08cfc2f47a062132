"""The records of share groups, in the versions that Kafka writes. One without a value deletes something."""

from collections.abc import Iterable
from typing import Any, Final

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.environment import Topics
from ottla.coordination.group.share.member import Member
from ottla.coordination.group.share.state_topics import StateTopics, TopicStates, name_of
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.share_group import (
    CurrentTopicPartitions,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TargetTopicPartitions,
    TopicInfo,
    TopicPartitionsInfo,
)

_VERSION: Final = 0
_TOMBSTONE: Final = -1


def member_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Say who a member is and what it subscribes to."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
    )
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value, _VERSION)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Give the group's epoch, and for which topics it holds."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), value, _VERSION)


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """Say what a member shall have."""
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TargetTopicPartitions(topic_id=topic, partitions=tuple(sorted(partitions[topic])))
            for topic in sorted(partitions)
        )
    )
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, value, _VERSION)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Say for which epoch of the group the target was computed, and when."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value, _VERSION)


def current_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Say what a member has."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=tuple(
            CurrentTopicPartitions(topic_id=topic, partitions=tuple(sorted(member.assigned[topic])))
            for topic in sorted(member.assigned)
        ),
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value, _VERSION)


def state_topics_record(group_id: str, state: StateTopics, topics: Topics) -> CoordinatorRecord:
    """List the topics that get state, have state, or lose it."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(state.initializing),
        initialized_topics=_infos(state.initialized),
        deleting_topics=tuple(
            TopicInfo(topic_id=topic, topic_name=name_of(topic, topics)) for topic in sorted(state.deleting)
        ),
    )
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), value, _VERSION)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Delete all records of a member, in the only order that Kafka accepts."""
    return [
        _tombstone(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        _tombstone(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        _tombstone(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    """Delete a group with these members, in the only order that Kafka accepts."""
    members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(current for current, _, _ in members),
        *(target for _, target, _ in members),
        _tombstone(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(member for _, _, member in members),
        _tombstone(ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        _tombstone(ShareGroupMetadataKey(group_id=group_id)),
    ]


def _tombstone(key: Any) -> CoordinatorRecord:
    return CoordinatorRecord(key, None, _TOMBSTONE)


def _infos(states: TopicStates) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(topic_id=topic, topic_name=name, partitions=tuple(sorted(partitions)))
        for topic, (name, partitions) in sorted(states.items())
    )
