"""OffsetFetch: what a group has committed, and what it may not build on yet.

With `require_stable`, a partition for which an open transaction holds an offset is not answered: the consumer
is to ask again when the transaction has ended (KIP-447). A group that does not exist has no offsets, which is
no error.
"""

from typing import Final

from ottla.coordination.group.kinds import Group
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset, CommittedOffsets
from ottla.coordination.group.refusal import Refused
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET: Final = -1


def fetch_offsets(
    group: Group | None, offsets: CommittedOffsets, ask: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Answer for one group. Topics are given by name, and by id too where the request has them."""
    if group is not None:
        try:
            group.check_fetch(ask.member_id, ask.member_epoch)
        except Refused as refused:
            if refused.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
                return refused_fetch(ask.group_id, refused.error_code)
            group = None
    if ask.topics is not None:
        topics = _fetch_some(None if group is None else offsets, ask, require_stable)
    else:
        topics = () if group is None else _fetch_all(offsets, ask.group_id, require_stable)
    return OffsetFetchResponseGroup(group_id=ask.group_id, topics=topics)


def refused_fetch(group_id: str, error_code: ErrorCode) -> OffsetFetchResponseGroup:
    """Return an answer that has one error for the whole group."""
    return OffsetFetchResponseGroup(group_id=group_id, topics=(), error_code=error_code)


def _fetch_some(
    offsets: CommittedOffsets | None, ask: OffsetFetchRequestGroup, require_stable: bool
) -> tuple[OffsetFetchResponseTopics, ...]:
    topics = []
    for topic in ask.topics or ():
        partitions = []
        for index in topic.partition_indexes:
            topic_partition = TopicPartition(topic.name, index)
            if offsets is not None and require_stable and offsets.is_unstable(ask.group_id, topic_partition):
                partitions.append(_unstable(index))
            else:
                committed = None if offsets is None else offsets.find(ask.group_id, topic_partition)
                partitions.append(_partition(index, committed, topic.topic_id))
        topics.append(
            OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
        )
    return tuple(topics)


def _fetch_all(
    offsets: CommittedOffsets, group_id: str, require_stable: bool
) -> tuple[OffsetFetchResponseTopics, ...]:
    topics: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for topic_partition, committed in offsets.of_group(group_id).items():
        if require_stable and offsets.is_unstable(group_id, topic_partition):
            answer = _unstable(topic_partition.partition)
        else:
            answer = _partition(topic_partition.partition, committed, ZERO_UUID)
        topics.setdefault(topic_partition.topic, []).append(answer)
    return tuple(
        OffsetFetchResponseTopics(name=name, partitions=tuple(partitions))
        for name, partitions in topics.items()
    )


def _partition(
    index: int, committed: CommittedOffset | None, topic_id: Uuid
) -> OffsetFetchResponsePartitions:
    if committed is None or _is_of_another_topic(committed.topic_id, topic_id):
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, metadata="")
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _is_of_another_topic(committed_id: Uuid, asked_id: Uuid) -> bool:
    """Say whether an offset is of a topic that had the same name and is gone."""
    return ZERO_UUID not in (committed_id, asked_id) and committed_id != asked_id


def _unstable(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        metadata="",
        error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )
