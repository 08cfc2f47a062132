"""Offsets that go: because somebody asks (OffsetDelete), with their group, or with their topic."""

from collections.abc import Iterable, Iterator

from ottla.coordination.group.kinds import Group
from ottla.coordination.group.offsets.committed_offsets import CommittedOffsets, offset_tombstone
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def decide_delete_offsets(
    group: Group | None, offsets: CommittedOffsets, ask: OffsetDeleteRequest
) -> Decision[OffsetDeleteResponse]:
    """Delete offsets of topics that nobody in the group reads."""
    if group is None:
        return Decision(reply=refused_delete(ErrorCode.GROUP_ID_NOT_FOUND))
    try:
        group.check_offset_delete()
    except Refused as refused:
        return Decision(reply=refused_delete(refused.error_code))
    gone: list[TopicPartition] = []
    topics = tuple(_delete_topic(group, offsets, topic, gone) for topic in ask.topics)
    return Decision(
        records=tuple(offset_tombstone(ask.group_id, topic_partition) for topic_partition in gone),
        reply=OffsetDeleteResponse(topics=topics),
    )


def refused_delete(error_code: ErrorCode) -> OffsetDeleteResponse:
    """Return an answer that has one error for everything."""
    return OffsetDeleteResponse(error_code=error_code, topics=())


def all_offset_tombstones(offsets: CommittedOffsets, group_id: str) -> Iterator[CoordinatorRecord]:
    """Return the records that delete all offsets of a group, those of open transactions too."""
    for topic_partition in dict.fromkeys((*offsets.of_group(group_id), *offsets.pending_of(group_id))):
        yield offset_tombstone(group_id, topic_partition)


def decide_topics_deleted(offsets: CommittedOffsets, topics: Iterable[tuple[str, Uuid]]) -> Decision[None]:
    """Delete what all groups have committed for topics that are gone.

    A topic of the same name may exist again already, and offsets of that one stay.
    """
    gone: dict[tuple[str, TopicPartition], None] = {}
    for name, topic_id in topics:
        for group_id, topic_partition, committed in offsets.all_of_topic(name):
            if committed.topic_id in (ZERO_UUID, topic_id):
                gone[group_id, topic_partition] = None
    records = tuple(offset_tombstone(group_id, topic_partition) for group_id, topic_partition in gone)
    return Decision(records=records, is_atomic=False)


def _delete_topic(
    group: Group, offsets: CommittedOffsets, topic: OffsetDeleteRequestTopic, gone: list[TopicPartition]
) -> OffsetDeleteResponseTopic:
    is_read = group.is_subscribed_to(topic.name)
    if not is_read:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            if offsets.find(group.group_id, topic_partition) or offsets.is_unstable(
                group.group_id, topic_partition
            ):
                gone.append(topic_partition)
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ),
    )
