"""The records of share groups, in the versions that Kafka writes. One without a value deletes something."""

from typing import Final

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.environment import Topics
from ottla.coordination.group.modern.records import Tombstones, record, tombstone
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

TOMBSTONES: Final = Tombstones(
    group=ShareGroupMetadataKey,
    member=ShareGroupMemberMetadataKey,
    target_epoch=ShareGroupTargetAssignmentMetadataKey,
    target=ShareGroupTargetAssignmentMemberKey,
    current=ShareGroupCurrentMemberAssignmentKey,
)
member_tombstones: Final = TOMBSTONES.all_of_member


def member_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Say who a member is and what it subscribes to."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
    )
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return record(key, value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Give the group's epoch, and for which topics it holds."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return record(ShareGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """Say what a member should have."""
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TargetTopicPartitions(topic_id=topic, partitions=tuple(sorted(partitions[topic])))
            for topic in sorted(partitions)
        )
    )
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return record(key, value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Say for which epoch of the group the target was computed, and when."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return record(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


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
    return record(key, value)


def state_topics_record(group_id: str, state: StateTopics, topics: Topics) -> CoordinatorRecord:
    """List the topics that get state, have state, or lose it."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(state.initializing),
        initialized_topics=_infos(state.initialized),
        deleting_topics=tuple(
            TopicInfo(topic_id=topic, topic_name=name_of(topic, topics)) for topic in sorted(state.deleting)
        ),
    )
    return record(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def state_topics_tombstone(group_id: str) -> CoordinatorRecord:
    """Delete the list of topics with state."""
    return tombstone(ShareGroupStatePartitionMetadataKey(group_id=group_id))


def _infos(states: TopicStates) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(topic_id=topic, topic_name=name, partitions=tuple(sorted(partitions)))
        for topic, (name, partitions) in sorted(states.items())
    )
