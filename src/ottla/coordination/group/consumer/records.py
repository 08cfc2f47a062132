"""The records of consumer groups, in the versions Kafka writes. One without a value deletes something."""

from typing import Final

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.reconciliation import Held
from ottla.coordination.group.modern.records import Tombstones, record, tombstone
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    TargetTopicPartitions,
)
from ottla.wire.coordinator_records.framing import CoordinatorRecord

TOMBSTONES: Final = Tombstones(
    group=ConsumerGroupMetadataKey,
    member=ConsumerGroupMemberMetadataKey,
    target_epoch=ConsumerGroupTargetAssignmentMetadataKey,
    target=ConsumerGroupTargetAssignmentMemberKey,
    current=ConsumerGroupCurrentMemberAssignmentKey,
)
member_tombstones: Final = TOMBSTONES.all_of_member


def member_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Record who a member is and what it subscribes to."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return record(key, value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Record the group's epoch, and for which topics it holds."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return record(ConsumerGroupMetadataKey(group_id=group_id), value)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Delete what releases before 4.1 wrote instead of the hash."""
    return tombstone(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """Record what a member should have."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TargetTopicPartitions(topic_id=topic, partitions=tuple(sorted(partitions[topic])))
            for topic in sorted(partitions)
        )
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return record(key, value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Record for which epoch of the group the target was made, and when."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Record what a member has, and what it has yet to give up."""
    assignment = member.assignment
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=assignment.member_epoch,
        previous_member_epoch=assignment.previous_epoch,
        state=assignment.state,
        assigned_partitions=_topics(assignment.assigned),
        partitions_pending_revocation=_topics(assignment.pending_revocation),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return record(key, value)


def regex_record(
    group_id: str, regex: str, topics: frozenset[str], version: int, timestamp_ms: int
) -> CoordinatorRecord:
    """Record which topics a regular expression matched, as of which metadata, and when."""
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(topics)), version=version, timestamp=timestamp_ms
    )
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return record(key, value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Delete a regular expression that nobody subscribes to any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return tombstone(key)


def _topics(held: Held) -> tuple[CurrentTopicPartitions, ...]:
    topics = []
    for topic in sorted(held):
        numbers = tuple(sorted(held[topic]))
        epochs = tuple(held[topic][number] for number in numbers)
        topics.append(CurrentTopicPartitions(topic_id=topic, partitions=numbers, assignment_epochs=epochs))
    return tuple(topics)
